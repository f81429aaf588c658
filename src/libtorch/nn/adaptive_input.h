#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "libtorch/nn/init.h"
#include "libtorch/nn/vocabulary_bands.h"

namespace seqconv::internal {

struct AdaptiveInputOptions {
  int64_t vocabulary = 0;        ///< V
  int64_t channels = 0;          ///< C
  std::vector<int64_t> cutoffs;  ///< ends of the bands before the last
  int64_t initial_dim = 0;       ///< width of band 0; 0 = C
  double factor = 4;             ///< band i is floor(initial_dim / factor^i) wide
  /// fairseq's quirk: the second word of every band, not <pad> alone, begins at
  /// zero and is never trained through the input (semantics.md 2.2, 8.6).
  bool fairseq_compatible = false;
};

/// Embedding of words by bands of falling frequency and width, each brought to
/// C channels by a linear map without bias (Baevski & Auli 2019; semantics.md
/// 2.2). Tables are N(0, 1/width), maps Xavier-uniform. <pad> gives zero and
/// gets no gradient. Not scaled by sqrt(C).
class AdaptiveInputImpl : public torch::nn::Module {
 public:
  explicit AdaptiveInputImpl(
      const AdaptiveInputOptions& options, const InitGenerator& generator = {});

  /// tokens [B, T] int64, best on the host, where they are sorted into bands
  /// -> [B, T, C], computed in `type`. Error for ids outside [0, V).
  at::Tensor forward(const at::Tensor& tokens, std::optional<at::ScalarType> type = {}) const;

  const AdaptiveInputOptions& options() const { return options_; }
  const VocabularyBands& bands() const { return bands_; }
  const at::Tensor& table(int64_t band) const {  ///< [size, width]
    return tables_[static_cast<size_t>(band)];
  }
  const at::Tensor& projection(int64_t band) const {  ///< [C, width]
    return projections_[static_cast<size_t>(band)];
  }

 private:
  AdaptiveInputOptions options_;
  VocabularyBands bands_;
  std::vector<at::Tensor> tables_;
  std::vector<at::Tensor> projections_;
};
TORCH_MODULE(AdaptiveInput);

}  // namespace seqconv::internal
