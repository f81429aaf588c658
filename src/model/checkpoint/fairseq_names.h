#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parameters.h"

/// Lists where fairseq and the TaLK repository keep the parameters of a model
/// (semantics.md 2.5).
namespace seqconv::internal {

/// A tensor of a checkpoint, or some of its rows.
struct FairseqRows {
  std::string name;
  int64_t begin = 0;
  int64_t count = -1;  ///< -1: all of them
  int64_t total = -1;  ///< rows that the tensor must have, where some are meant
};

/// One of our parameters: its rows are theirs, one part below the other. They
/// may carry dimensions of size 1 that ours lacks ([H, 1, K]).
struct Correspondence {
  ParameterShape ours;
  /// Different ways to write it; a checkpoint has exactly one. The first is
  /// that of the published files and of the TaLK repository.
  std::vector<std::vector<FairseqRows>> alternatives;
  size_t main = 0;  ///< which one present fairseq writes
};

/// A tensor that a checkpoint repeats because the model shares it: `copy` must
/// be equal to `original`.
struct SharedTensor {
  std::string copy;
  std::string original;
};

/// A model in terms of a checkpoint.
struct FairseqLayout {
  std::vector<Correspondence> parameters;
  std::vector<SharedTensor> shared;
};

/// Lists where checkpoints have the parameters of this model, all key schemes
/// among the alternatives: q, k, v as in_proj_weight or apart, embed_out or
/// output_projection, layer_norms.0 or layer_norm1. UsageError for what fairseq
/// has no module for: self-attention, average attention and CNN blocks, biases
/// of convolutions, a query, renormalised edges, normalisations other than
/// softmax and none.
FairseqLayout fairseq_layout(
    const ModelOptions& options, Task task, const VocabularySizes& vocabulary);

/// True for tensors that carry nothing: versions, position buffers, and the
/// conv_bias that fairseq registers without ever setting or using it.
bool is_bookkeeping(const std::string& name);

}  // namespace seqconv::internal
