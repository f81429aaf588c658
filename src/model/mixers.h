#pragma once

#include <cstdint>
#include <vector>

#include "kernels/normalization_names.h"
#include "model/kinds.h"
#include "model/layer_lists.h"
#include "model/short_convs.h"

/// Mixers, which mix information along time in the layers of a model: the
/// kinds, the keys that choose among them, and what one layer's mixer consists
/// of. mixers.cpp says what a kind reads, requires and learns.
namespace seqconv::internal {

/// The kinds of what mixes information along time in a layer.
enum class MixerKind { kLightConv, kDynamicConv, kTalk, kSelfAttention, kAverageAttention, kCnn };
template <>
struct EnumNames<MixerKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, MixerKind>>(
      {{"lightconv", MixerKind::kLightConv},
       {"dynamicconv", MixerKind::kDynamicConv},
       {"talk", MixerKind::kTalk},
       {"self_attention", MixerKind::kSelfAttention},
       {"average_attention", MixerKind::kAverageAttention},
       {"cnn", MixerKind::kCnn}});
};

/// The tensor that a dynamic convolution's kernels are predicted from: the
/// input of the convolution itself (after linear1 and the gate), or that of its
/// block.
enum class QuerySource { kConvInput, kBlockInput };
template <>
struct EnumNames<QuerySource> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, QuerySource>>(
      {{"conv_input", QuerySource::kConvInput}, {"block_input", QuerySource::kBlockInput}});
};

/// [model.encoder] and [model.decoder]. A list holds one entry a layer, or a
/// single one that stands for every layer that has such a thing; in a longer
/// list, layers that have none keep the default.
struct StackOptions {
  int64_t layers = 6;
  std::vector<MixerKind> block = {MixerKind::kDynamicConv};
  std::vector<int64_t> kernel_sizes;
  std::vector<int64_t> max_offsets;
  int64_t heads = 8;
  std::vector<int64_t> conv_heads = {0};
  std::vector<int64_t> conv_dim = {0};
  LayerFlags glu = true;
  std::vector<kernels::Normalization> normalization = {kernels::Normalization::kSoftmax};
  LayerFlags renormalize_edges = false;
  LayerFlags conv_bias = false;
  LayerFlags filter_bias = false;
  std::vector<QuerySource> query = {QuerySource::kConvInput};
  LayerFlags average_ffn = true;
  SideNorm norm = SideNorm::kAuto;
  int64_t ffn_dim = 0;
  SidePositions positions = SidePositions::kAuto;
  int64_t max_positions = 0;
  ShortConvKeys short_conv;

  template <class Visitor>
  void visit(Visitor& v) {
    v("layers", layers, "Number of layers, 1 to 1,048,576");
    v("block",
      block,
      R"(lightconv, dynamicconv, talk, self_attention, average_attention or cnn; one, or one a layer)");
    v("kernel_sizes",
      kernel_sizes,
      R"(Positions: kernel width (lightconv, dynamicconv, cnn; at least 1) or window (self_attention, 0 = all); one, or one a layer (0 in other layers))");
    v("max_offsets",
      max_offsets,
      R"(talk: furthest reach to each side in positions, at least 1; one, or one a layer (0 elsewhere))");
    v("heads",
      heads,
      R"(Heads of convolutions and attention, at least 1; must divide dim (of a convolution: its conv_dim))");
    v("conv_heads",
      conv_heads,
      R"(lightconv, dynamicconv, talk: heads where they differ, must divide conv_dim; 0 = heads; one, or one a layer)");
    v("conv_dim",
      conv_dim,
      R"(lightconv, dynamicconv, talk: channels of the convolution, which the linear maps around it lead to and from; 0 = dim; one, or one a layer)");
    v("glu",
      glu,
      R"(lightconv, dynamicconv, talk: gated linear unit before the convolution; one, or one a layer)");
    v("normalization",
      normalization,
      R"(lightconv, dynamicconv: of a kernel's taps: softmax, none, sigmoid, tanh, square, abs, l1, l2, abs_l1 or abs_l2; one, or one a layer)");
    v("renormalize_edges",
      renormalize_edges,
      R"(lightconv, dynamicconv: taps outside the sequence get no weight before the softmax; one, or one a layer)");
    v("conv_bias",
      conv_bias,
      R"(lightconv, dynamicconv, cnn: a bias after the convolution; one, or one a layer)");
    v("filter_bias",
      filter_bias,
      R"(dynamicconv: a bias of the map that predicts the kernels; one, or one a layer)");
    v("query",
      query,
      R"(dynamicconv: what the kernels are predicted from, conv_input or block_input; one, or one a layer)");
    v("average_ffn",
      average_ffn,
      R"(average_attention: a network of width ffn_dim between average and gate; one, or one a layer)");
    v("norm", norm, "Layer normalisation of this side: post, pre, or auto (model.norm)");
    v("ffn_dim",
      ffn_dim,
      R"(Channels inside the feed-forward blocks of this side; 0 = model.ffn_dim)");
    v("positions",
      positions,
      R"(Position embeddings of this side: sinusoidal, learned, none, or auto (model.positions))");
    v("max_positions",
      max_positions,
      R"(Longest sequence of this side in tokens: learned positions, and what training keeps; 0 = model.max_positions)");
    v("short_conv", short_conv, "Short convolutions in the layers");
  }

  MixerKind block_at(int64_t layer) const {
    return layer_entry(block, layer, MixerKind::kDynamicConv);
  }
  /// Kernel width or window of a layer; 0 where none is given.
  int64_t kernel_size_at(int64_t layer) const { return layer_entry(kernel_sizes, layer, 0); }
  int64_t max_offset_at(int64_t layer) const { return layer_entry(max_offsets, layer, 0); }
  /// Heads of the layer's convolution, or `heads`.
  int64_t conv_heads_at(int64_t layer) const {
    const int64_t own = layer_entry(conv_heads, layer, 0);
    return own != 0 ? own : heads;
  }
  /// Channels of the layer's convolution in a model of width `dim`.
  int64_t conv_dim_at(int64_t layer, int64_t dim) const {
    const int64_t own = layer_entry(conv_dim, layer, 0);
    return own != 0 ? own : dim;
  }
  bool glu_at(int64_t layer) const { return layer_entry(glu, layer, true); }
  kernels::Normalization normalization_at(int64_t layer) const {
    return layer_entry(normalization, layer, kernels::Normalization::kSoftmax);
  }
  bool renormalize_edges_at(int64_t layer) const {
    return layer_entry(renormalize_edges, layer, false);
  }
  bool conv_bias_at(int64_t layer) const { return layer_entry(conv_bias, layer, false); }
  bool filter_bias_at(int64_t layer) const { return layer_entry(filter_bias, layer, false); }
  QuerySource query_at(int64_t layer) const {
    return layer_entry(query, layer, QuerySource::kConvInput);
  }
  bool average_ffn_at(int64_t layer) const { return layer_entry(average_ffn, layer, true); }
};

/// Describes what mixes information along time in one layer. Entries that its
/// kind does not read are the default.
struct MixerOptions {
  MixerKind kind = MixerKind::kDynamicConv;
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
  /// The layer's, whatever its kind: behind its linear maps or in front of its parts.
  LayerShortConv short_conv{};

  /// Counts those of the K taps of a convolution before the current position.
  int64_t padding_left() const { return causal ? kernel_size - 1 : kernel_size / 2; }
};

}  // namespace seqconv::internal
