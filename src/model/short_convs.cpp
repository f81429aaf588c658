#include "base/options.h"
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

bool has_any(const LayerShortConv& conv) {
  return conv.exists();
}
bool has_predicted_taps(const LayerShortConv& conv) {
  return conv.exists() && conv.predicts();
}
bool has_narrow_map(const LayerShortConv& conv) {
  return conv.exists() && conv.taps == ShortConvTaps::kLowRank;
}

/// The layers that a key is for.
struct Readers {
  bool (*has)(const LayerShortConv&);
  const char* name;
};
Readers readers_of(const std::string& key) {
  if (key == "head_channels")
    return {has_predicted_taps, "short convolutions with dynamic or low_rank taps"};
  if (key == "rank")
    return {has_narrow_map, "short convolutions with low_rank taps"};
  return {has_any, "short convolutions (a place other than none)"};
}

/// Entries that say something stand for layers that have it.
void check_lists(const StackOptions& stack, const std::string& path) {
  const Json given = write_options(stack.short_conv), standard = write_options(ShortConvKeys());
  for (const auto& [key, list] : given.items())
    check_list(list, stack.layers, concat(path, ".short_conv.", key), /*may_be_empty=*/false);
  for (const auto& [key, list] : given.items()) {
    const Readers readers = readers_of(key);
    const std::string name = concat(path, ".short_conv.", key);
    bool read = key == "place";
    for (int64_t i = 0; i < stack.layers; ++i) {
      const bool own = key == "place" || readers.has(entries(stack.short_conv, i));
      read = read || own;
      if (list.size() > 1 && !own && list[static_cast<size_t>(i)] != standard[key][0])
        fail_usage(name, " (layer ", i, ") must be the default: it is for ", readers.name);
    }
    if (!read && list.size() == 1 && list != standard[key])
      fail_usage(name, " is given, but no layer has ", readers.name);
  }
}

void check_divides(int64_t channels, const Keyed& width, const std::string& key) {
  if (width.value % channels != 0)
    fail_usage(key, " must divide ", width.name(), ", but got ", channels, " and ", width.value);
}

}  // namespace

LayerShortConv layer_short_conv(const StackOptions& stack, int64_t layer, bool causal) {
  LayerShortConv conv = entries(stack.short_conv, layer);
  if (!conv.exists())
    return {};
  conv.causal = causal;
  return conv;
}

ShortConvKeys expanded_short_convs(const StackOptions& stack) {
  ShortConvKeys all{
      .place = {},
      .taps = {},
      .kernel_size = {},
      .group_channels = {},
      .head_channels = {},
      .rank = {},
      .activation = {},
      .residual = LayerFlags(),
      .bias = LayerFlags()};
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    LayerShortConv conv = entries(stack.short_conv, layer);
    if (!conv.exists())
      conv = entries({}, layer);
    all.place.push_back(conv.place);
    all.taps.push_back(conv.taps);
    all.kernel_size.push_back(conv.kernel_size);
    all.group_channels.push_back(conv.group_channels);
    all.head_channels.push_back(conv.predicts() ? conv.head_channels : 0);
    all.rank.push_back(has_narrow_map(conv) ? conv.rank : 0);
    all.activation.push_back(conv.activation);
    all.residual.push_back(conv.residual);
    all.bias.push_back(conv.bias);
  }
  return all;
}

void check_short_convs(
    const StackOptions& stack, const std::string& path, const Keyed& dim, const Keyed& ffn_dim) {
  check_lists(stack, path);
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    const LayerShortConv conv = entries(stack.short_conv, layer);
    if (!conv.exists())
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
