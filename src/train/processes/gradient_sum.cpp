#include "train/processes/gradient_sum.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

#include "base/error.h"

namespace seqconv::internal {

/// The flat gradients cut up, in the order in which all processes send them:
/// the last parameters first, whose gradients a backward pass makes first.
struct GradientSum::Buckets {
  struct Bucket {
    std::span<float> gradients;
    int64_t parameters = 0;
    int64_t missing = 0;  ///< parameters whose gradients are not complete
  };

  std::shared_ptr<Communicator> communicator;
  std::vector<Bucket> buckets;
  size_t next = 0;  // to be sent
  bool armed = false;
  /// A hook lives as long as the node that it hangs on.
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes;

  void arm() {
    for (Bucket& bucket : buckets)
      bucket.missing = bucket.parameters;
    armed = true;
  }

  /// One more parameter of bucket `index` has its gradient. What is complete
  /// leaves in order only: the sums of all processes must meet each other.
  void complete(size_t index) {
    if (!armed)
      return;
    --buckets[index].missing;
    while (next < buckets.size() && buckets[next].missing == 0)
      communicator->start_sum(buckets[next++].gradients);
  }

  /// `sums` travel with the last buckets.
  void finish(std::span<double> sums = {}) {
    armed = false;
    while (next < buckets.size())
      communicator->start_sum(buckets[next++].gradients);
    if (!sums.empty())
      communicator->start_sum(sums);
    communicator->finish_sums();
    next = 0;
  }
};

namespace {

/// Called when the gradient of a parameter has been added to the flat buffer.
class WhenAccumulated : public torch::autograd::FunctionPostHook {
 public:
  explicit WhenAccumulated(std::function<void()> call) : call_(std::move(call)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

void sum_over_processes(Communicator& communicator, UpdateSums& sums) {
  std::vector<double> numbers = sums.numbers();
  communicator.sum(numbers);
  sums.set_numbers(numbers.data());
}

}  // namespace

GradientSum::GradientSum(
    torch::nn::Module& model,
    const FlatParameters& parameters,
    std::shared_ptr<Communicator> communicator,
    int64_t bucket_elements)
    : buckets_(std::make_shared<Buckets>()) {
  buckets_->communicator = std::move(communicator);
  if (buckets_->communicator->size() == 1)
    return;
  const auto variables = model.parameters();
  const std::vector<ParameterSlot>& slots = parameters.slots();
  SEQCONV_CHECK(
      variables.size() == slots.size(),
      "the flat buffers hold ",
      slots.size(),
      " parameters, but the model has ",
      variables.size());
  float* gradients = parameters.gradients().mutable_data_ptr<float>();
  int64_t end = parameters.gradients().numel();
  int64_t count = 0;
  for (size_t i = slots.size(); i-- > 0;) {
    const size_t index = buckets_->buckets.size();  // of its bucket
    auto node = torch::autograd::impl::grad_accumulator(variables[i]);
    node->add_post_hook(std::make_unique<WhenAccumulated>([weak = std::weak_ptr(buckets_), index] {
      if (const auto buckets = weak.lock())
        buckets->complete(index);
    }));
    buckets_->nodes.push_back(std::move(node));
    ++count;
    const int64_t begin = slots[i].offset;
    if (end - begin < bucket_elements && i > 0)
      continue;
    buckets_->buckets.push_back(
        {.gradients = {gradients + begin, static_cast<size_t>(end - begin)}, .parameters = count});
    end = begin;
    count = 0;
  }
}

GradientSum::~GradientSum() = default;

bool GradientSum::is_alone() const {
  return buckets_->communicator->size() == 1;
}

void GradientSum::start_with_backward() {
  buckets_->arm();
}

void GradientSum::finish(const at::Tensor& sums) {
  if (buckets_->communicator->size() == 1)
    return;
  buckets_->finish({sums.mutable_data_ptr<double>(), static_cast<size_t>(sums.numel())});
}

void GradientSum::finish(UpdateSums& sums) {
  if (buckets_->communicator->size() == 1)
    return;
  buckets_->finish();
  sum_over_processes(*buckets_->communicator, sums);
}

}  // namespace seqconv::internal
