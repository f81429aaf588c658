#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/activation_names.h"
#include "model/layer_lists.h"

/// Short convolutions in the layers of today's language models: the keys that
/// choose them, and what one layer has of them (docs/variants.md).
namespace seqconv::internal {

/// The places of short convolutions in a layer: behind queries, keys and values of
/// self-attention; behind every linear map; in front of mixer and feed-forward
/// network, as Canon layers.
enum class ShortConvPlace { kNone, kQkv, kLinear, kBlock };
template <>
struct EnumNames<ShortConvPlace> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ShortConvPlace>>(
      {{"none", ShortConvPlace::kNone},
       {"qkv", ShortConvPlace::kQkv},
       {"linear", ShortConvPlace::kLinear},
       {"block", ShortConvPlace::kBlock}});
};

/// The taps: the same everywhere; or, besides, those that a linear map predicts for
/// every position, at once or through a narrow one.
enum class ShortConvTaps { kStatic, kDynamic, kLowRank };
template <>
struct EnumNames<ShortConvTaps> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ShortConvTaps>>(
      {{"static", ShortConvTaps::kStatic},
       {"dynamic", ShortConvTaps::kDynamic},
       {"low_rank", ShortConvTaps::kLowRank}});
};

/// [model.encoder.short_conv] and [model.decoder.short_conv]: lists of one entry,
/// or of one a layer.
struct ShortConvKeys {
  std::vector<ShortConvPlace> place = {ShortConvPlace::kNone};
  std::vector<ShortConvTaps> taps = {ShortConvTaps::kStatic};
  std::vector<int64_t> kernel_size = {4};
  std::vector<int64_t> group_channels = {1};
  std::vector<int64_t> head_channels = {0};
  std::vector<int64_t> rank = {16};
  std::vector<kernels::ConvActivation> activation = {kernels::ConvActivation::kNone};
  LayerFlags residual = true;
  LayerFlags bias = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("place",
      place,
      R"(Short convolutions: none, qkv (behind queries, keys and values), linear (behind every linear map) or block (in front of mixer and feed-forward network); qkv and linear in self_attention layers; one, or one a layer)");
    v("taps",
      taps,
      R"(static, dynamic (and taps of every position, from a linear map) or low_rank (through a narrow one); one, or one a layer)");
    v("kernel_size", kernel_size, "Taps, at least 1; one, or one a layer");
    v("group_channels",
      group_channels,
      R"(Neighbouring channels with the same static taps; must divide every width; one, or one a layer)");
    v("head_channels",
      head_channels,
      R"(dynamic, low_rank: neighbouring channels with the same predicted taps; must divide every width; 0 = 64 (dynamic) or 1 (low_rank); one, or one a layer)");
    v("rank", rank, R"(low_rank: channels of the narrow map, at least 1; one, or one a layer)");
    v("activation", activation, R"(Behind the convolution: none or silu; one, or one a layer)");
    v("residual", residual, R"(Adds the convolution's input to its output; one, or one a layer)");
    v("bias", bias, R"(A bias of every channel; one, or one a layer)");
  }
};

/// The short convolutions of one layer.
struct LayerShortConv {
  ShortConvPlace place = ShortConvPlace::kNone;
  ShortConvTaps taps = ShortConvTaps::kStatic;
  bool causal = false;         ///< a decoder's
  int64_t kernel_size = 0;     ///< K
  int64_t group_channels = 1;  ///< C/G
  int64_t head_channels = 1;   ///< C/H of predicted taps
  int64_t rank = 0;            ///< P of low_rank
  bool bias = false;
  kernels::ConvActivation activation = kernels::ConvActivation::kNone;
  bool residual = true;

  bool exists() const { return place != ShortConvPlace::kNone; }
  bool behind_qkv() const { return place == ShortConvPlace::kQkv || behind_linear(); }
  bool behind_linear() const { return place == ShortConvPlace::kLinear; }
  bool before_blocks() const { return place == ShortConvPlace::kBlock; }
  bool predicts() const { return taps != ShortConvTaps::kStatic; }

  int64_t groups(int64_t channels) const { return channels / group_channels; }  ///< G
  /// H of predicted taps; 0: there are none.
  int64_t heads(int64_t channels) const { return predicts() ? channels / head_channels : 0; }
  int64_t padding_left() const { return causal ? kernel_size - 1 : kernel_size / 2; }
  /// Steps that a decoder's looks back.
  int64_t reach() const { return exists() ? kernel_size - 1 : 0; }
};

}  // namespace seqconv::internal
