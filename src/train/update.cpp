#include "train/update.h"

#include <cmath>
#include <numeric>

#include "libtorch/nn/dropout_plan.h"

namespace seqconv::internal {

std::optional<at::ScalarType> activation_type(Precision precision) {
  switch (precision) {
    case Precision::kBFloat16:
      return at::kBFloat16;
    case Precision::kFloat16:
      return at::kHalf;
    case Precision::kFloat32:
      break;
  }
  return std::nullopt;
}

int64_t source_tokens(const Batch& batch) {
  return std::accumulate(batch.source_lengths.begin(), batch.source_lengths.end(), int64_t{0});
}

void accumulate_batch(
    const SequenceModel& model,
    const Batch& batch,
    const LossOptions& loss,
    const RandomKey& key,
    UpdateSums& sums,
    Precision precision) {
  DropoutPlan plan(key);
  plan.set_activation_type(activation_type(precision));
  const LossSums result = model.loss(batch, loss, plan);
  if (!std::isfinite(result.objective.item<double>())) {
    ++sums.broken;
    return;
  }
  result.objective.backward();
  sums.loss += result.loss.item<double>();
  sums.nll += result.nll.item<double>();
  if (result.alignment.defined())
    sums.alignment += result.alignment.item<double>();
  sums.aligned_tokens += result.aligned_tokens;
  sums.target_tokens += batch.target_tokens;
  sums.source_tokens += source_tokens(batch);
  sums.sentences += batch.rows;
}

StepResult apply_update(
    const FlatParameters& parameters,
    Optimizer& optimizer,
    const StepOptions& options,
    const UpdateSums& sums) {
  const at::Tensor& gradients = parameters.gradients();
  const double per_token = 1.0 / static_cast<double>(std::max<int64_t>(sums.target_tokens, 1));
  StepResult result;
  result.gradient_norm = gradient_norm(gradients) * per_token;
  const double clip = clip_factor(result.gradient_norm, options.clip_norm);
  result.skipped = !may_update(result.gradient_norm * clip, sums.broken);
  if (!result.skipped) {
    const double scale = per_token * clip;
    optimizer.step(options.shares.own(gradients), scale, options.learning_rate);
    options.shares.share(parameters.values());
  }
  gradients.zero_();
  return result;
}

}  // namespace seqconv::internal
