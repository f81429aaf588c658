#include "model/mixers.h"

#include <algorithm>

#include "model/mixer_rules.h"

namespace seqconv::internal {
namespace {

/// The keys of StackOptions that some kinds read and others do not.
enum class MixerKey {
  kKernelSizes,
  kMaxOffsets,
  kConvHeads,
  kConvDim,
  kGlu,
  kNormalization,
  kRenormalizeEdges,
  kConvBias,
  kFilterBias,
  kQuery,
  kAverageFfn
};

bool reads(MixerKind kind, MixerKey key) {
  using enum MixerKey;
  const auto any_of = [key](auto... keys) { return ((key == keys) || ...); };
  switch (kind) {
    case MixerKind::kLightConv:
      return any_of(
          kKernelSizes, kConvHeads, kConvDim, kGlu, kNormalization, kRenormalizeEdges, kConvBias);
    case MixerKind::kDynamicConv:
      return any_of(kFilterBias, kQuery) || reads(MixerKind::kLightConv, key);
    case MixerKind::kTalk:
      return any_of(kMaxOffsets, kConvHeads, kConvDim, kGlu);
    case MixerKind::kSelfAttention:
      return any_of(kKernelSizes);
    case MixerKind::kAverageAttention:
      return any_of(kAverageFfn);
    case MixerKind::kCnn:
      return any_of(kKernelSizes, kConvBias);
  }
  fail("unknown block kind");
}

bool any_reads(const std::vector<MixerKind>& kinds, MixerKey key) {
  return std::any_of(
      kinds.begin(), kinds.end(), [key](MixerKind kind) { return reads(kind, key); });
}

/// "lightconv, dynamicconv or talk": the kinds that read a key.
std::string readers_of(MixerKey key) {
  std::vector<std::string_view> names;
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames)
    if (reads(kind, key))
      names.push_back(name);
  std::string list;
  for (size_t i = 0; i < names.size(); ++i)
    list += concat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return list;
}

void require_reader(
    const StackOptions& stack, const std::string& path, const char* key, MixerKey which) {
  if (!any_reads(stack.block, which))
    fail_usage(
        path, ".", key, " is given, but ", path, ".block has no ", readers_of(which), " layer");
}

/// An entry that is not the default must stand for a layer that reads it.
template <class List>
void check_readers(
    const StackOptions& stack,
    const std::string& path,
    List StackOptions::*member,
    const char* key,
    MixerKey which) {
  const List& list = stack.*member;
  const typename List::value_type missing = (StackOptions().*member)[0];
  check_list(list, stack.layers, concat(path, ".", key), false);
  for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
    if (list[static_cast<size_t>(i)] == missing)
      continue;
    if (list.size() == 1)
      require_reader(stack, path, key, which);
    else if (!reads(stack.block_at(i), which))
      fail_usage(
          path,
          ".",
          key,
          " (layer ",
          i,
          ": ",
          enum_name(stack.block_at(i)),
          ") must be the default: only ",
          readers_of(which),
          " layers have one");
  }
}

/// What decides the reach of a kind that has no kernel.
const char* reach_without_kernel(MixerKind kind) {
  switch (kind) {
    case MixerKind::kLightConv:
    case MixerKind::kDynamicConv:
    case MixerKind::kSelfAttention:
    case MixerKind::kCnn:
      return "";
    case MixerKind::kTalk:
      return "; their reach is max_offsets";
    case MixerKind::kAverageAttention:
      return ", which see all";
  }
  fail("unknown block kind");
}

/// Widths that no layer reads are misunderstandings, not decoration.
void check_widths_are_read(const StackOptions& stack, const std::string& path) {
  if (!stack.max_offsets.empty())
    require_reader(stack, path, "max_offsets", MixerKey::kMaxOffsets);
  if (stack.kernel_sizes.empty() || any_reads(stack.block, MixerKey::kKernelSizes))
    return;
  const MixerKind kind = *std::min_element(
      stack.block.begin(),
      stack.block.end());  // TaLK's where both are there
  fail_usage(
      path,
      ".kernel_sizes is given, but ",
      path,
      ".block has ",
      enum_name(kind),
      " layers only",
      reach_without_kernel(kind));
}

/// Width and heads of a convolution with projections around it.
void check_convolution(
    const StackOptions& stack, int64_t layer, const Keyed& dim, const std::string& path) {
  const bool own_width = layer_entry(stack.conv_dim, layer, 0) != 0;
  const bool own_heads = layer_entry(stack.conv_heads, layer, 0) != 0;
  const Keyed width =
      own_width ? Keyed{stack.conv_dim_at(layer, dim.value), path, "conv_dim"} : dim;
  check_at_least(width.value, 1, width.name());
  check_heads({stack.conv_heads_at(layer), path, own_heads ? "conv_heads" : "heads"}, width);
}

/// UsageError when a layer that needs a reach has none.
void check_reach(
    const StackOptions& stack,
    const std::vector<int64_t>& list,
    int64_t layer,
    const std::string& key) {
  check_list(list, stack.layers, key, /*may_be_empty=*/false);
  check_at_least(layer_entry(list, layer, 0), 1, key);
}

}  // namespace

MixerOptions mixer_options(
    const ModelOptions& model, const StackOptions& stack, int64_t layer, bool causal) {
  using enum MixerKey;
  MixerOptions mixer{
      .kind = stack.block_at(layer), .causal = causal, .dim = model.dim, .heads = stack.heads};
  const auto has = [&](MixerKey key) { return reads(mixer.kind, key); };
  if (has(kKernelSizes))
    mixer.kernel_size = stack.kernel_size_at(layer);
  if (has(kMaxOffsets))
    mixer.max_offset = stack.max_offset_at(layer);
  if (has(kConvHeads))
    mixer.heads = stack.conv_heads_at(layer);
  if (has(kConvDim))
    mixer.conv_dim = stack.conv_dim_at(layer, model.dim);
  if (has(kGlu))
    mixer.glu = stack.glu_at(layer);
  if (has(kNormalization))
    mixer.normalization = stack.normalization_at(layer);
  if (has(kRenormalizeEdges))
    mixer.renormalize_edges = stack.renormalize_edges_at(layer);
  if (has(kConvBias))
    mixer.conv_bias = stack.conv_bias_at(layer);
  if (has(kFilterBias))
    mixer.filter_bias = stack.filter_bias_at(layer);
  if (has(kQuery))
    mixer.query = stack.query_at(layer);
  if (has(kAverageFfn) && stack.average_ffn_at(layer))
    mixer.average_hidden = model.ffn_dim_of(stack);
  mixer.short_conv = layer_short_conv(stack, layer, causal);
  return mixer;
}

kernels::Activation default_activation(MixerKind kind) {
  return kind == MixerKind::kTalk ? kernels::Activation::kSwish : kernels::Activation::kRelu;
}

void check_mixer_lists(const StackOptions& stack, const std::string& path) {
  using enum MixerKey;
  const int64_t layers = stack.layers;
  check_list(stack.block, layers, path + ".block", false);
  check_list(stack.kernel_sizes, layers, path + ".kernel_sizes", true);
  check_list(stack.max_offsets, layers, path + ".max_offsets", true);
  check_list(stack.glu, layers, path + ".glu", false);
  check_widths_are_read(stack, path);
  const auto check = [&](auto member, const char* key, MixerKey which) {
    check_readers(stack, path, member, key, which);
  };
  check(&StackOptions::conv_heads, "conv_heads", kConvHeads);
  check(&StackOptions::conv_dim, "conv_dim", kConvDim);
  check(&StackOptions::normalization, "normalization", kNormalization);
  check(&StackOptions::renormalize_edges, "renormalize_edges", kRenormalizeEdges);
  check(&StackOptions::conv_bias, "conv_bias", kConvBias);
  check(&StackOptions::filter_bias, "filter_bias", kFilterBias);
  check(&StackOptions::query, "query", kQuery);
  check(&StackOptions::average_ffn, "average_ffn", kAverageFfn);
}

void check_mixer(
    const StackOptions& stack, int64_t layer, const Keyed& dim, const std::string& path) {
  const MixerKind kind = stack.block_at(layer);
  const std::string at = concat(" (layer ", layer, ": ", enum_name(kind), ")");
  switch (kind) {
    case MixerKind::kLightConv:
    case MixerKind::kDynamicConv:
    case MixerKind::kCnn:
      check_reach(stack, stack.kernel_sizes, layer, path + ".kernel_sizes" + at);
      break;
    case MixerKind::kTalk:
      check_reach(stack, stack.max_offsets, layer, path + ".max_offsets" + at);
      break;
    case MixerKind::kSelfAttention:
      check_at_least(stack.kernel_size_at(layer), 0, path + ".kernel_sizes" + at);
      break;
    case MixerKind::kAverageAttention:
      break;
  }
  const kernels::Normalization normalization = stack.normalization_at(layer);
  if (reads(kind, MixerKey::kRenormalizeEdges) && stack.renormalize_edges_at(layer) &&
      normalization != kernels::Normalization::kSoftmax) {
    fail_usage(
        path,
        ".renormalize_edges = true needs ",
        path,
        ".normalization = \"softmax\", but got \"",
        enum_name(normalization),
        "\"",
        at);
  }
  if (stack.glu_at(layer) && !reads(kind, MixerKey::kGlu)) {
    fail_usage(
        path,
        ".glu = true contradicts ",
        path,
        ".block = \"",
        enum_name(kind),
        "\", which has no linear1 and no gate; set glu = false",
        at);
  }
  if (!is_as_wide_as_model(kind))
    check_convolution(stack, layer, dim, path);
}

bool is_as_wide_as_model(MixerKind kind) {
  return !reads(kind, MixerKey::kConvDim);
}

bool takes_short_convs(MixerKind kind) {
  return kind == MixerKind::kSelfAttention;
}

void add_mixer_parameters(const MixerOptions& mixer, const std::string& name, ParameterList& list) {
  const bool projected = !is_as_wide_as_model(mixer.kind);
  const int64_t dim = mixer.dim;
  const int64_t width = projected ? mixer.conv_dim : dim;
  const int64_t heads = mixer.heads, taps = mixer.kernel_size;
  if (projected)
    list.linear(name + "linear1", mixer.glu ? 2 * width : width, dim);
  switch (mixer.kind) {
    case MixerKind::kLightConv:
      list.add(name + "conv.weight", {heads, taps});
      break;
    case MixerKind::kDynamicConv: {
      const bool own = mixer.query == QuerySource::kConvInput;
      list.matrix(name + "conv.weight_linear", heads * taps, own ? width : dim);
      if (mixer.filter_bias)
        list.add(name + "conv.weight_linear_bias", {heads * taps});
      break;
    }
    case MixerKind::kTalk:
      list.linear(name + "conv.offsets", mixer.causal ? heads : 2 * heads, width);
      break;
    case MixerKind::kSelfAttention:
      list.linear(name + "attention.in_proj", 3 * dim, dim);
      list.linear(name + "attention.out_proj", dim, dim);
      if (mixer.short_conv.behind_qkv())
        add_short_conv_parameters(mixer.short_conv, name + "attention.in_conv", 3 * dim, dim, list);
      if (mixer.short_conv.behind_linear())
        add_short_conv_parameters(mixer.short_conv, name + "attention.out_conv", dim, dim, list);
      break;
    case MixerKind::kAverageAttention:
      if (const int64_t hidden = mixer.average_hidden; hidden > 0) {
        list.linear(name + "attention.ffn.fc1", hidden, dim);
        list.linear(name + "attention.ffn.fc2", dim, hidden);
      }
      list.linear(name + "attention.gate", 2 * dim, 2 * dim);
      break;
    case MixerKind::kCnn:
      list.add(name + "conv.weight", {dim, dim, taps});
      break;
  }
  if (mixer.conv_bias)
    list.add(name + "conv.bias", {width});
  if (projected)
    list.linear(name + "linear2", dim, width);
}

}  // namespace seqconv::internal
