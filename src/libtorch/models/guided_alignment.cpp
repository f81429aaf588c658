#include "libtorch/models/guided_alignment.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

/// The number of links of each target token, [B, T].
std::vector<int64_t> links_of_targets(const Batch& batch) {
  std::vector<int64_t> counts(static_cast<size_t>(batch.rows * batch.target_steps), 0);
  for (const BatchLink& link : batch.links)
    ++counts[static_cast<size_t>(link.row * batch.target_steps + link.target)];
  return counts;
}

}  // namespace

at::Tensor guided_alignment_loss(const at::Tensor& log_shares, const Batch& batch) {
  const std::vector<int64_t> counts = links_of_targets(batch);
  std::vector<int64_t> places;  // in [B, T, S]
  std::vector<double> weights;
  for (const BatchLink& link : batch.links) {
    SEQCONV_CHECK(
        link.target + 1 < batch.target_steps && link.source < batch.source_steps,
        "links must be of tokens before </s>, but got ",
        link.source,
        "-",
        link.target);
    const int64_t step = link.row * batch.target_steps + link.target;
    places.push_back((step + 1) * batch.source_steps + link.source);
    weights.push_back(-1 / static_cast<double>(counts[static_cast<size_t>(step)]));
  }
  const at::Device device = log_shares.device();
  const at::Tensor own =  // [links]
      at::index_select(
          log_shares.reshape(-1), 0, ops::to_device(at::tensor(places, at::kLong), device));
  const at::Tensor weight = at::tensor(weights, at::kDouble).to(log_shares.scalar_type());
  return (own * ops::to_device(weight, device)).sum();
}

LossSums add_guided_alignment(
    const ops::CrossEntropySums& sums,
    const at::Tensor& log_shares,
    const Batch& batch,
    const LossOptions& options) {
  const at::Tensor alignment = guided_alignment_loss(log_shares, batch);
  at::Tensor weighted = alignment * options.guided_alignment;
  if (options.gradient_scale.defined()) {  // of its gradient alone
    const at::Tensor scaled = weighted * options.gradient_scale;
    weighted = weighted.detach() + (scaled - scaled.detach());
  }
  const auto linked =
      std::ranges::count_if(links_of_targets(batch), [](int64_t links) { return links > 0; });
  return {sums, sums.loss + weighted, alignment.detach(), linked};
}

}  // namespace seqconv::internal
