#include "train/processes/flat_shares.h"

#include <ATen/ops/empty.h>

#include <span>

#include "base/error.h"

namespace seqconv::internal {
namespace {

std::span<float> floats_of(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

std::vector<int64_t> share_ends(int64_t count, int64_t size) {
  constexpr int64_t kUnit = Communicator::kShareUnit;
  SEQCONV_CHECK(
      count % kUnit == 0,
      "only buffers of a multiple of ",
      kUnit,
      " elements are shared out, but got ",
      count);
  std::vector<int64_t> ends;
  for (int64_t rank = 0; rank < size; ++rank)
    ends.push_back(count / kUnit * (rank + 1) / size * kUnit);
  return ends;
}

FlatShares::FlatShares(
    std::shared_ptr<Communicator> processes, const FlatParameters& parameters, bool wanted)
    : processes_(std::move(processes)) {
  if (wanted && processes_->size() > 1)
    ends_ = share_ends(parameters.values().numel(), processes_->size());
}

int64_t FlatShares::begin() const {
  if (!is_cut() || processes_->is_first())
    return 0;
  return ends_[static_cast<size_t>(processes_->rank() - 1)];
}

at::Tensor FlatShares::own(const at::Tensor& whole) const {
  if (!is_cut())
    return whole;
  const int64_t end = ends_[static_cast<size_t>(processes_->rank())];
  return whole.narrow(0, begin(), end - begin());
}

void FlatShares::share(const at::Tensor& whole) const {
  if (is_cut())
    processes_->share(floats_of(whole), ends_);
}

at::Tensor FlatShares::collect(const at::Tensor& own) const {
  if (!is_cut())
    return own;
  at::Tensor whole;
  if (collects())
    whole = at::empty({ends_.back()});
  processes_->collect(
      floats_of(own), whole.defined() ? floats_of(whole) : std::span<float>(), ends_);
  return whole;
}

}  // namespace seqconv::internal
