#pragma once

#include "base/random.h"
#include "libtorch/models/sequence_model.h"
#include "libtorch/nn/flat_parameters.h"
#include "text/corpus/batch.h"
#include "train/optimizer.h"
#include "train/options.h"
#include "train/processes/flat_shares.h"
#include "train/processes/update_sums.h"

/// One training update as a function of its inputs: micro-batches -> summed
/// gradients and counts (of all processes: gradient_sum.h) -> scale, clip,
/// step.
namespace seqconv::internal {

/// Gives what DropoutPlan::set_activation_type takes.
std::optional<at::ScalarType> activation_type(Precision precision);

/// Those of all rows, </s> counted.
int64_t source_tokens(const Batch& batch);

/// Forward and backward of one batch. Adds the gradient of its summed loss to
/// the parameters' gradients and its losses and counts to `sums`; nothing but a
/// count is added when the loss is not finite.
void accumulate_batch(
    const SequenceModel& model,
    const Batch& batch,
    const LossOptions& loss,
    const RandomKey& key,
    UpdateSums& sums,
    Precision precision = Precision::kFloat32);

/// Per token, after clipping: squares up to 1e38 and their running means are
/// finite in float32.
inline constexpr double kLargestNorm = 1e19;

/// The rule for NaN and infinity: an update is made if each of its losses was finite (`broken`
/// counts the others), and its gradient's norm is one that kLargestNorm allows, which NaN is
/// not. For numbers, and for tensors [] of a device.
template <class Norm, class Count>
auto may_update(const Norm& clipped_norm, const Count& broken) {
  return (clipped_norm <= kLargestNorm) & (broken == 0);
}

/// Holds what a step needs besides gradients.
struct StepOptions {
  double clip_norm = 0;
  double learning_rate = 0;
  FlatShares shares{};  ///< which part of the values the optimiser has
};

struct StepResult {
  bool skipped = false;      ///< no finite loss and gradient, or too large
  double gradient_norm = 0;  ///< per target token, before clipping
};

/// Ends an update: gradients summed over its batches, divided by the target
/// tokens of the whole effective batch, clipped, one optimiser step, gradients
/// zeroed. Parameters and optimiser stay as they are where the loss or the
/// gradient is not finite, or the gradient so large that the optimiser's
/// float32 cannot hold its square (clipped norms above 1e19). An optimiser that
/// has a share of the values steps on it; the others' are fetched.
StepResult apply_update(
    const FlatParameters& parameters,
    Optimizer& optimizer,
    const StepOptions& options,
    const UpdateSums& sums);

}  // namespace seqconv::internal
