#include <algorithm>

#include "model/mixer_rules.h"

namespace seqconv::internal {
namespace {

/// Channels with the same predicted taps unless said otherwise: a head's of
/// attention, or a kernel for each.
constexpr int64_t kDynamicHead = 64;
constexpr int64_t kLowRankHead = 1;

LayerShortConv entries(const ShortConvKeys& keys, int64_t layer) {
  LayerShortConv conv{
      .place = layer_entry(keys.place, layer, ShortConvPlace::kNone),
      .taps = layer_entry(keys.taps, layer, ShortConvTaps::kStatic),
      .kernel_size = layer_entry(keys.kernel_size, layer, 0),
      .group_channels = layer_entry(keys.group_channels, layer, 1),
      .head_channels = layer_entry(keys.head_channels, layer, 0),
      .rank = layer_entry(keys.rank, layer, 0),
      .bias = layer_entry(keys.bias, layer, false),
      .activation = layer_entry(keys.activation, layer, kernels::ConvActivation::kNone),
      .residual = layer_entry(keys.residual, layer, true)};
  if (conv.head_channels == 0)
    conv.head_channels = conv.taps == ShortConvTaps::kLowRank ? kLowRankHead : kDynamicHead;
  return conv;
}

/// Entries of a list stand for layers that have what they speak of.
template <class List>
void check_entries(
    const StackOptions& stack,
    const std::string& path,
    List ShortConvKeys::*member,
    const char* key,
    const char* readers,
    bool (*reads)(const LayerShortConv&)) {
  const List& list = stack.short_conv.*member;
  const std::string name = concat(path, ".short_conv.", key);
  check_list(list, stack.layers, name, /*may_be_empty=*/false);
  const typename List::value_type standard = (ShortConvKeys().*member)[0];
  bool read = false;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const bool own = reads(entries(stack.short_conv, i));
    read = read || own;
    if (list.size() > 1 && !own && layer_entry(list, i, standard) != standard)
      fail_usage(name, " (layer ", i, ") must be the default: it is for ", readers);
  }
  if (!read && list.size() == 1 && list[0] != standard)
    fail_usage(name, " is given, but no layer has ", readers);
}

void check_lists(const StackOptions& stack, const std::string& path) {
  check_list(
      stack.short_conv.place, stack.layers, path + ".short_conv.place", /*may_be_empty=*/false);
  check_list(
      stack.short_conv.taps, stack.layers, path + ".short_conv.taps", /*may_be_empty=*/false);
  const auto check = [&](auto member, const char* key, const char* readers, auto reads) {
    check_entries(stack, path, member, key, readers, reads);
  };
  const auto any = [](const LayerShortConv& conv) { return conv.place != ShortConvPlace::kNone; };
  const char* const all = "short convolutions (a place other than none)";
  check(&ShortConvKeys::taps, "taps", all, any);
  check(&ShortConvKeys::kernel_size, "kernel_size", all, any);
  check(&ShortConvKeys::group_channels, "group_channels", all, any);
  check(&ShortConvKeys::activation, "activation", all, any);
  check(&ShortConvKeys::residual, "residual", all, any);
  check(&ShortConvKeys::bias, "bias", all, any);
  check(
      &ShortConvKeys::head_channels,
      "head_channels",
      "short convolutions with dynamic or low_rank taps",
      [](const LayerShortConv& conv) {
        return conv.place != ShortConvPlace::kNone && conv.predicts();
      });
  check(
      &ShortConvKeys::rank,
      "rank",
      "short convolutions with low_rank taps",
      [](const LayerShortConv& conv) {
        return conv.place != ShortConvPlace::kNone && conv.taps == ShortConvTaps::kLowRank;
      });
}

void check_divides(int64_t channels, const Keyed& width, const std::string& key) {
  if (width.value % channels != 0)
    fail_usage(key, " must divide ", width.name(), ", but got ", channels, " and ", width.value);
}

}  // namespace

LayerShortConv layer_short_conv(const StackOptions& stack, int64_t layer, bool causal) {
  LayerShortConv conv = entries(stack.short_conv, layer);
  if (conv.place == ShortConvPlace::kNone)
    return {};
  conv.causal = causal;
  return conv;
}

void check_short_convs(
    const StackOptions& stack, const std::string& path, const Keyed& dim, const Keyed& ffn_dim) {
  check_lists(stack, path);
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    const LayerShortConv conv = entries(stack.short_conv, layer);
    if (conv.place == ShortConvPlace::kNone)
      continue;
    const auto key = [&](const char* name) {
      return concat(path, ".short_conv.", name, " (layer ", layer, ")");
    };
    if (!conv.before_blocks() && !takes_short_convs(stack.block_at(layer)))
      fail_usage(
          key("place"),
          " = \"",
          enum_name(conv.place),
          "\" needs ",
          path,
          ".block = \"self_attention\", but got \"",
          enum_name(stack.block_at(layer)),
          "\"");
    check_at_least(conv.kernel_size, 1, key("kernel_size"));
    check_at_least(conv.group_channels, 1, key("group_channels"));
    check_at_least(conv.head_channels, 1, key("head_channels"));
    if (conv.taps == ShortConvTaps::kLowRank)
      check_at_least(conv.rank, 1, key("rank"));
    for (const Keyed& width : conv.behind_linear() ? std::vector{dim, ffn_dim} : std::vector{dim}) {
      check_divides(conv.group_channels, width, key("group_channels"));
      if (conv.predicts())
        check_divides(conv.head_channels, width, key("head_channels"));
    }
  }
}

void add_short_conv_parameters(
    const LayerShortConv& conv,
    const std::string& name,
    int64_t channels,
    int64_t query_channels,
    ParameterList& list) {
  const int64_t K = conv.kernel_size, taps = conv.heads(channels) * K;
  list.add(name + ".weight", {conv.groups(channels), K});
  switch (conv.taps) {
    case ShortConvTaps::kStatic:
      break;
    case ShortConvTaps::kDynamic:
      list.matrix(name + ".weight_linear", taps, query_channels);
      break;
    case ShortConvTaps::kLowRank:
      list.matrix(name + ".narrow", conv.rank, query_channels);
      list.matrix(name + ".weight_linear", taps, conv.rank);
      break;
  }
  if (conv.bias)
    list.add(name + ".bias", {channels});
}

}  // namespace seqconv::internal
