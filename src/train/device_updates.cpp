#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <utility>

#include "base/log.h"
#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/device.h"
#include "train/updates.h"

namespace seqconv::internal {
namespace {

/// Where the numbers of UpdateSums stand: in the order of its visit().
enum Sum {
  kLoss,
  kNll,
  kAlignment,
  kTargetTokens,
  kSourceTokens,
  kSentences,
  kAlignedTokens,
  kBroken,
};
constexpr int64_t kSums = UpdateSums::kNumbers;

/// Numbers that updates leave for the position.
enum Count {
  kSkips,
  kSkipsInARow,
  kMostInARow,
  kGradientNorm,
  kLossScale,
  kUpdatesAtScale,
  kScaleSkips,  ///< those of kSkips that a lower loss scale may mend
  kCounts,
};

template <class Values>
at::Tensor as_tensor(const Values& values, at::Device device) {
  return ops::to_device(at::tensor(values, at::kDouble), device);
}

/// Decides on the device what HostUpdates decides on the host, in float64
/// scalars beside the buffers: nothing is read until read(), one copy.
class DeviceUpdates : public Updates {
 public:
  explicit DeviceUpdates(const UpdateParts& parts)
      : parts_(parts), device_(parts.parameters.values().device()) {
    const Position& position = parts.position;
    current_ = as_tensor(position.current.numbers(), device_);
    logged_ = as_tensor(position.logged.numbers(), device_);
    counts_ = as_tensor(
        std::vector<double>{
            static_cast<double>(position.logged_skips),
            static_cast<double>(position.skips_in_a_row),
            0,
            position.gradient_norm,
            loss_scale_of(parts),
            static_cast<double>(position.updates_at_loss_scale),
            0},
        device_);
    if (parts_.scaling.on)
      parts_.position.loss_scale = loss_scale_of(parts);
    scalars_ = parts.optimizer.scalars_on(device_);
  }

  void add_batch(const Batch& batch, const RandomKey& key) override {
    add_rows(batch, key, 0, batch.rows);
  }

  void end(const StepOptions& options) override {
    parts_.gradients.finish(current_);
    const at::Tensor& gradients = parts_.parameters.gradients();
    const at::Tensor per_token =
        (current_.select(0, kTargetTokens).clamp_min(1) * counts_.select(0, kLossScale))
            .reciprocal();
    const at::Tensor norm = at::linalg_vector_norm(
                                gradients,
                                2,
                                /*dim=*/at::OptionalIntArrayRef(),
                                /*keepdim=*/false,
                                at::kDouble) *
        per_token;
    const at::Tensor clip = options.clip_norm > 0
        ? ((norm + 1e-6).reciprocal() * options.clip_norm).clamp_max(1)
        : at::ones_like(norm);
    const at::Tensor keep = may_update(norm * clip, current_.select(0, kBroken));
    parts_.optimizer.step_where(
        keep, options.shares.own(gradients), per_token * clip, options.learning_rate, scalars_);
    options.shares.share(parts_.parameters.values());
    parts_.average.add_where(keep, scalars_.select(0, 0));
    const at::Tensor mendable = adapt_loss_scale(keep, norm);
    count(keep, mendable, norm);
    current_.zero_();
    gradients.zero_();
  }

  void begin_record() override {
    parts_.position.logged = {};
    parts_.position.logged_skips = 0;
    logged_.zero_();
    counts_.select(0, kSkips).zero_();
    counts_.select(0, kScaleSkips).zero_();
    scale_skips_said_ = 0;
  }

  void read() override {
    const at::Tensor all = ops::to_host(at::cat({current_, logged_, counts_, scalars_}));
    const double* values = all.const_data_ptr<double>();
    Position& position = parts_.position;
    position.current.set_numbers(values);
    position.logged.set_numbers(values + kSums);
    const double* counts = values + 2 * kSums;
    const int64_t mended = read_loss_scale(counts);
    report_skips(static_cast<int64_t>(counts[kSkips]), mended);
    position.skips_in_a_row = static_cast<int64_t>(counts[kSkipsInARow]);
    position.gradient_norm = counts[kGradientNorm];
    parts_.optimizer.scalars() = {
        .steps = static_cast<int64_t>(counts[kCounts]),
        .previous_learning_rate = counts[kCounts + 1]};
    if (counts[kMostInARow] >= static_cast<double>(kMostSkipsInARow))
      fail_diverged(parts_);
  }

 private:
  /// Rows for which the memory is too small are split in two.
  void add_rows(const Batch& batch, const RandomKey& key, int64_t first, int64_t count) {
    const int64_t tokens = count * (batch.source_steps + batch.target_steps);
    if (count == 1 || tokens < too_many_tokens_) {
      if (fit_rows(batch, key, first, count))
        return;
      note_too_many(batch, count, tokens);
    }
    add_rows(batch, key, first, count / 2);
    add_rows(batch, key, first + count / 2, count - count / 2);
  }

  /// False when the device has too little memory: then nothing has changed.
  bool fit_rows(const Batch& batch, const RandomKey& key, int64_t first, int64_t count) {
    std::string fault = try_rows(batch, key, first, count);
    // Gradients that are on their way to other processes cannot be undone.
    const bool alone = parts_.gradients.is_alone();
    if (!fault.empty() && alone) {
      // Other libraries cannot ask LibTorch for the memory that it keeps.
      ops::empty_cache(device_);
      fault = try_rows(batch, key, first, count);
    }
    if (!fault.empty() && (count == 1 || !alone))
      fail(fault, "; lower batching.max_tokens (", parts_.config.batching.max_tokens, ")");
    return fault.empty();
  }

  /// The fault when the device has too little memory, else "".
  std::string try_rows(const Batch& batch, const RandomKey& key, int64_t first, int64_t count) {
    try {
      if (count == batch.rows)
        run(batch, DropoutPlan(key, device_));
      else
        run(cut_rows(batch, first, count), DropoutPlan(key, device_, part_of(batch, first, count)));
      return "";
    } catch (const c10::Error& error) {
      if (!ops::is_out_of_memory(error))
        throw;
      return error.what_without_backtrace();
    }
  }

  static BatchPart part_of(const Batch& batch, int64_t first, int64_t count) {
    const auto begin = batch.target_out.begin();
    return {
        .rows_before = first,
        .rows = count,
        .targets_before = {begin, begin + first * batch.target_steps}};
  }

  void note_too_many(const Batch& batch, int64_t rows, int64_t tokens) {
    if (too_many_tokens_ == std::numeric_limits<int64_t>::max()) {
      parts_.before_warning();
      log_warning(
          "the memory of ",
          device_.str(),
          " is too small for ",
          rows,
          " rows of ",
          batch.source_steps,
          " source and ",
          batch.target_steps,
          " target tokens: such batches are split, with the same results; batching.max_tokens is ",
          parts_.config.batching.max_tokens);
    }
    too_many_tokens_ = std::min(too_many_tokens_, tokens);
  }

  void run(const Batch& batch, DropoutPlan plan) {
    const TrainingOptions& training = parts_.config.training;
    plan.set_activation_type(activation_type(training.precision));
    LossOptions options = loss_options(training);
    if (parts_.scaling.on)
      options.gradient_scale = counts_.select(0, kLossScale).to(at::kFloat);
    const LossSums result = parts_.model.loss(batch, options, plan);
    differentiate(result.objective);
    const at::Tensor loss = result.loss.detach().to(at::kDouble);
    const at::Tensor finite = at::isfinite(result.objective.detach());
    const at::Tensor alignment =
        result.alignment.defined() ? result.alignment.to(at::kDouble) : at::zeros_like(loss);
    const at::Tensor counts = as_tensor(
        std::vector<double>{
            static_cast<double>(batch.target_tokens),
            static_cast<double>(source_tokens(batch)),
            static_cast<double>(batch.rows),
            static_cast<double>(result.aligned_tokens)},
        device_);
    const at::Tensor added = at::cat(  // [7]
        {at::stack({loss, result.nll.to(at::kDouble), alignment}), counts});
    current_.narrow(0, 0, kBroken).add_(at::where(finite, added, 0.0));
    current_.select(0, kBroken).add_(finite.logical_not());
  }

  /// All gradients or none: a backward pass that adds them one by one could not
  /// be tried again.
  void differentiate(const at::Tensor& loss) {
    if (!parts_.gradients.is_alone())
      return loss.backward();
    std::vector<at::Tensor> sums, shares;
    const std::vector<at::Tensor> parameters = parts_.model.parameters();
    const auto found = torch::autograd::grad(
        {loss},
        parameters,
        /*grad_outputs=*/{},
        /*retain_graph=*/std::nullopt,
        /*create_graph=*/false,
        /*allow_unused=*/true);
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!found[i].defined())
        continue;
      sums.push_back(parameters[i].grad());
      shares.push_back(found[i]);
    }
    at::_foreach_add_(sums, shares);
  }

  static double loss_scale_of(const UpdateParts& parts) {
    if (!parts.scaling.on)
      return 1;
    const double saved = parts.position.loss_scale;
    return saved > 0 ? saved : kFirstLossScale;
  }

  /// Whether the update is one that is skipped, but may do at the scale that is
  /// now a lower one: [] bool.
  at::Tensor adapt_loss_scale(const at::Tensor& keep, const at::Tensor& norm) {
    if (!parts_.scaling.on)
      return at::zeros_like(keep);
    at::Tensor scale = counts_.select(0, kLossScale);
    at::Tensor steady = counts_.select(0, kUpdatesAtScale);
    // Losses do not depend on the scale.
    const at::Tensor mendable = at::isfinite(norm)
                                    .logical_not()
                                    .logical_and(scale.gt(kLeastLossScale))
                                    .logical_and(current_.select(0, kBroken).eq(0));
    const auto interval = static_cast<double>(parts_.scaling.growth_interval);
    const at::Tensor grows = keep.logical_and(steady.ge(interval - 1));
    steady.copy_(at::where(keep.logical_and(grows.logical_not()), steady + 1, 0.0));
    scale.copy_(at::where(mendable, scale * 0.5, at::where(grows, scale * 2, scale))
                    .clamp(kLeastLossScale, kMostLossScale));
    counts_.select(0, kScaleSkips).add_(mendable);
    return mendable;
  }

  void count(const at::Tensor& keep, const at::Tensor& mendable, const at::Tensor& norm) {
    logged_.add_(at::where(keep, current_, 0.0));
    counts_.select(0, kSkips).add_(keep.logical_not());
    at::Tensor in_a_row = counts_.select(0, kSkipsInARow);
    const at::Tensor more = in_a_row + mendable.logical_not();
    in_a_row.copy_(at::where(keep, 0.0, more));
    at::Tensor most = counts_.select(0, kMostInARow);
    most.copy_(at::maximum(most, in_a_row));
    at::Tensor last = counts_.select(0, kGradientNorm);
    last.copy_(at::where(keep, norm, last));
  }

  /// Says how the loss scale has changed; returns how many updates were skipped
  /// because of it since the last call.
  int64_t read_loss_scale(const double* counts) {
    if (!parts_.scaling.on)
      return 0;
    Position& position = parts_.position;
    const auto skips = static_cast<int64_t>(counts[kScaleSkips]);
    const int64_t more = skips - std::exchange(scale_skips_said_, skips);
    const double before = std::exchange(position.loss_scale, counts[kLossScale]);
    position.updates_at_loss_scale = static_cast<int64_t>(counts[kUpdatesAtScale]);
    if (position.loss_scale != before || more > 0) {
      parts_.before_warning();
      log_info(
          "float16: the loss scale is ",
          position.loss_scale,
          " at update ",
          position.update,
          " (updates that it skipped: ",
          more,
          ")");
    }
    return more;
  }

  /// `mended` of them have been reported.
  void report_skips(int64_t skips, int64_t mended) {
    Position& position = parts_.position;
    const int64_t more = skips - position.logged_skips - mended;
    position.logged_skips = skips;
    if (more <= 0)
      return;
    parts_.before_warning();
    log_warning(
        more == 1 ? "an update" : concat(more, " updates"),
        " up to update ",
        position.update,
        more == 1 ? " was skipped: its" : " were skipped: their",
        " loss or gradient was not finite, or too large to be squared in float32");
  }

  UpdateParts parts_;
  at::Device device_;
  /// The fewest tokens of padded rows that were too many.
  int64_t too_many_tokens_ = std::numeric_limits<int64_t>::max();
  at::Tensor current_;  // [kSums] of the update under way
  at::Tensor logged_;   // [kSums] since the last record
  at::Tensor counts_;   // [kCounts]
  int64_t scale_skips_said_ = 0;
  at::Tensor scalars_;  // [2] of the optimiser
};

}  // namespace

std::unique_ptr<Updates> make_device_updates(const UpdateParts& parts) {
  return std::make_unique<DeviceUpdates>(parts);
}

}  // namespace seqconv::internal
