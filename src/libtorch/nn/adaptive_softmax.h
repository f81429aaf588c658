#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "libtorch/nn/adaptive_input.h"
#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/linear_cross_entropy.h"

namespace seqconv::internal {

struct AdaptiveSoftmaxOptions {
  int64_t vocabulary = 0;        ///< V
  int64_t channels = 0;          ///< C
  std::vector<int64_t> cutoffs;  ///< ends of the bands before the last
  double factor = 4;             ///< tail i is floor(C / factor^(i+1)) wide
  double dropout = 0;            ///< on the input and on each tail's projection
  /// With tied words: the tails' projections are the input's, transposed.
  bool tie_projections = false;
  /// fairseq's quirk: the loss leaves out the tail term of the second word of
  /// every tail, whose number there is <pad>'s (semantics.md 2.2, 8.6).
  bool fairseq_compatible = false;
};

/// Softmax in two stages (Grave et al. 2017; semantics.md 2.2): the head holds
/// the words of band 0 and one entry a tail; a tail projects the input to a
/// smaller width and holds the words of its band.
///   log P(w) = log head[w], or log head[c0 + i] + log tail_i[w - begin]
/// No biases; Xavier-uniform. <pad> as a target counts nothing.
class AdaptiveSoftmaxImpl : public torch::nn::Module {
 public:
  /// `tied`: an adaptive input of equal cutoffs and factor whose tables are the
  /// words of head and tails; empty: matrices of its own.
  explicit AdaptiveSoftmaxImpl(
      const AdaptiveSoftmaxOptions& options,
      const InitGenerator& generator = {},
      const AdaptiveInput& tied = nullptr);

  /// hidden [M, C], target [M] int64 -> sums of -log P, differentiable. In
  /// chunks of rows: memory does not grow with M x V. `gradient_scale` is that
  /// of CrossEntropyOptions.
  ops::CrossEntropySums loss(
      const at::Tensor& hidden,
      const at::Tensor& target,
      DropoutPlan& plan,
      const at::Tensor& gradient_scale = {}) const;

  /// Natural log-probability of target[i] given hidden row i: [M]. <pad> counts
  /// as a word like any other.
  at::Tensor target_log_probabilities(const at::Tensor& hidden, const at::Tensor& target) const;

  /// All log-probabilities [M, V], at least float32.
  at::Tensor log_probabilities(const at::Tensor& hidden) const;

  const VocabularyBands& bands() const { return bands_; }

 private:
  int64_t tails() const { return bands_.count() - 1; }
  int64_t head_words() const { return bands_.end(0); }
  at::Tensor head_weight(at::ScalarType type) const;
  at::Tensor head_logits(const at::Tensor& hidden) const;
  at::Tensor tail_input(int64_t tail, const at::Tensor& hidden) const;

  AdaptiveSoftmaxOptions options_;
  VocabularyBands bands_;
  at::Tensor head_;                      ///< untied: [c0 + tails, C]
  at::Tensor head_words_;                ///< tied: [c0, initial_dim]
  at::Tensor head_projection_;           ///< tied, [initial_dim, C] or none
  at::Tensor class_projection_;          ///< tied: [tails, C]
  std::vector<at::Tensor> projections_;  ///< [width, C]
  std::vector<at::Tensor> words_;        ///< [size, width]
};
TORCH_MODULE(AdaptiveSoftmax);

}  // namespace seqconv::internal
