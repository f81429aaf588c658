#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "model/options.h"

/// Lists what each layer of a model consists of: the entries of its options for
/// this layer, defaults resolved. Modules, parameters and the runtime are made
/// from it.
namespace seqconv::internal {

struct LayerOptions {
  MixerOptions mixer;
  NormPlacement norm = NormPlacement::kPost;
  /// Heads of the look at the source; 0: there is none.
  int64_t cross_heads = 0;
  int64_t ffn_dim = 0;  ///< channels inside the feed-forward network
  kernels::Activation activation = kernels::Activation::kRelu;
};

/// The options of layer `layer` of a side. `options` must be valid for the
/// task.
LayerOptions layer_options(const ModelOptions& options, Task task, Side side, int64_t layer);

}  // namespace seqconv::internal
