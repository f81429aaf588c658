#pragma once

#include "libtorch/models/sequence_model.h"

/// Guided alignment (Garg et al. 2019, "Jointly Learning to Align and Translate"): a head of
/// the decoder learns to look at the source tokens that a word alignment links.
namespace seqconv::internal {

/// The cross-entropy between links and a head's look, summed over the target tokens that have
/// links. A token's look is that of the step which reads it (AlignmentOptions::next_step), and
/// each of its links has the same share of it:
///   loss = -sum over links (b, s, t) of log_shares[b, t + 1, s] / number of links of (b, t).
/// log_shares [B, T, S]; `batch` has links, none of the last target token (</s>) -> [].
at::Tensor guided_alignment_loss(const at::Tensor& log_shares, const Batch& batch);

/// The losses of a batch's tokens with that of its alignment, of the look [B, T, S].
LossSums add_guided_alignment(
    const ops::CrossEntropySums& sums,
    const at::Tensor& log_shares,
    const Batch& batch,
    const LossOptions& options);

}  // namespace seqconv::internal
