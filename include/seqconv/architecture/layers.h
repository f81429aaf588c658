#pragma once

#include <cstdint>

#include "seqconv/architecture/options.h"
#include "seqconv/kernels/activation.h"

/// What each layer of a model consists of: the entries of its options for this
/// layer, defaults resolved. Modules, parameters and the runtime are made from
/// it.
namespace seqconv {

/// What mixes information along time in one layer. A kind reads what it has.
struct MixerOptions {
  BlockKind kind = BlockKind::kDynamicConv;
  bool causal = false;      ///< a decoder's
  int64_t dim = 0;          ///< C of the layer
  int64_t heads = 1;        ///< H of the convolution, or of attention
  int64_t kernel_size = 0;  ///< K; self-attention: its window, 0: all
  /// lightconv, dynamicconv and talk: channels of the convolution.
  int64_t conv_dim = 0;
  bool glu = false;
  /// talk: furthest reach to each side.
  int64_t max_offset = 0;
  /// lightconv and dynamicconv.
  kernels::Normalization normalization = kernels::Normalization::kSoftmax;
  bool renormalize_edges = false;
  bool conv_bias = false;  ///< cnn too
  /// dynamicconv.
  bool filter_bias = false;
  QuerySource query = QuerySource::kConvInput;
  /// average_attention: channels inside its network; 0: it has none.
  int64_t average_hidden = 0;

  /// Of the K taps of a convolution, those before the current position.
  int64_t padding_left() const {
    return causal ? kernel_size - 1 : kernel_size / 2;
  }
};

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
LayerOptions
layer_options(const ModelOptions& options, Task task, Side side, int64_t layer);

}  // namespace seqconv
