#include <algorithm>

#include "option_checks.h"

namespace seqconv {
namespace {

/// The entry of a layer in a list of one or of `layers` entries; 0 if empty.
template <class List>
typename List::value_type
entry(const List& list, int64_t layer, typename List::value_type missing) {
  if (list.empty())
    return missing;
  return list.size() == 1 ? list[0] : list.at(static_cast<size_t>(layer));
}

template <class List>
void check_list(
    const List& list,
    int64_t layers,
    const std::string& key,
    bool may_be_empty) {
  const auto size = static_cast<int64_t>(list.size());
  if ((size == 0 && may_be_empty) || size == 1 || size == layers)
    return;
  fail_usage(
      key,
      " must have 1 ",
      layers == 1 ? std::string("entry")
                  : concat("or ", layers, " entries (one a layer)"),
      ", but got ",
      size);
}

/// A number and the key that says it.
struct Keyed {
  int64_t value;
  std::string path;
  const char* key;

  std::string name() const { return concat(path, ".", key); }
};

void check_heads(const Keyed& heads, const Keyed& width) {
  check_at_least(heads.value, 1, heads.name());
  if (width.value % heads.value != 0)
    fail_usage(
        heads.name(),
        " must divide ",
        width.name(),
        ", but got ",
        heads.value,
        " heads for ",
        width.key,
        " = ",
        width.value);
}

bool is_dynamic(BlockKind kind) {
  return kind == BlockKind::kDynamicConv;
}
bool has_taps(BlockKind kind) {
  return kind == BlockKind::kLightConv || is_dynamic(kind);
}
bool may_have_bias(BlockKind kind) {
  return kind == BlockKind::kCnn || has_taps(kind);
}
bool averages(BlockKind kind) {
  return kind == BlockKind::kAverageAttention;
}

/// Convolution blocks with projections around them, and perhaps a gate.
bool has_linear1(BlockKind kind) {
  return kind == BlockKind::kTalk || has_taps(kind);
}

/// Width and heads of a convolution with projections around it.
void check_convolution(
    const StackOptions& stack,
    int64_t layer,
    const Keyed& dim,
    const std::string& path) {
  const bool own_width = entry(stack.conv_dim, layer, 0) != 0;
  const bool own_heads = entry(stack.conv_heads, layer, 0) != 0;
  const Keyed width = own_width
      ? Keyed{stack.conv_dim_at(layer, dim.value), path, "conv_dim"}
      : dim;
  check_at_least(width.value, 1, width.name());
  check_heads(
      {stack.conv_heads_at(layer), path, own_heads ? "conv_heads" : "heads"},
      width);
}

void check_layer(
    const StackOptions& stack,
    int64_t layer,
    const std::string& path) {
  const BlockKind kind = stack.block_at(layer);
  const int64_t kernel = stack.kernel_size_at(layer);
  const int64_t offset = stack.max_offset_at(layer);
  const std::string at = concat(" (layer ", layer, ": ", enum_name(kind), ")");
  switch (kind) {
    case BlockKind::kLightConv:
    case BlockKind::kDynamicConv:
    case BlockKind::kCnn:
      check_at_least(kernel, 1, path + ".kernel_sizes" + at);
      break;
    case BlockKind::kTalk:
      check_at_least(offset, 1, path + ".max_offsets" + at);
      break;
    case BlockKind::kSelfAttention:
      check_at_least(kernel, 0, path + ".kernel_sizes" + at);
      break;
    case BlockKind::kAverageAttention:
      break;
  }
  const kernels::Normalization normalization = stack.normalization_at(layer);
  if (has_taps(kind) && stack.renormalize_edges_at(layer) &&
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
  if (stack.glu_at(layer) && !has_linear1(kind)) {
    fail_usage(
        path,
        ".glu = true contradicts ",
        path,
        ".block = \"",
        enum_name(kind),
        "\", which has no linear1 and no gate; set glu = false",
        at);
  }
}

/// Which blocks read a key, and how a message calls them.
struct Readers {
  bool (*reads)(BlockKind kind);
  const char* names;
};

/// An entry that is not the default must stand for a layer that reads it.
template <class List>
void check_readers(
    const StackOptions& stack,
    const List& list,
    const List& defaults,
    const std::string& path,
    const char* key,
    const Readers& readers) {
  check_list(list, stack.layers, concat(path, ".", key), false);
  const bool whole = list.size() == 1;
  const auto reads = [&](BlockKind kind) { return readers.reads(kind); };
  for (int64_t i = 0; i < static_cast<int64_t>(list.size()); ++i) {
    if (list[static_cast<size_t>(i)] == defaults[0])
      continue;
    if (whole ? std::any_of(stack.block.begin(), stack.block.end(), reads)
              : reads(stack.block_at(i)))
      continue;
    if (whole)
      fail_usage(
          path,
          ".",
          key,
          " is given, but ",
          path,
          ".block has no ",
          readers.names,
          " layer");
    fail_usage(
        path,
        ".",
        key,
        " (layer ",
        i,
        ": ",
        enum_name(stack.block_at(i)),
        ") must be the default: only ",
        readers.names,
        " layers have one");
  }
}

void check_variants(const StackOptions& stack, const std::string& path) {
  const StackOptions defaults;
  const Readers convolutions{has_linear1, "lightconv, dynamicconv or talk"};
  const Readers taps{has_taps, "lightconv or dynamicconv"};
  const Readers biased{may_have_bias, "lightconv, dynamicconv or cnn"};
  const Readers dynamic{is_dynamic, "dynamicconv"};
  const Readers average{averages, "average_attention"};
  const auto check = [&](const auto StackOptions::*list,
                         const char* key,
                         const Readers& readers) {
    check_readers(stack, stack.*list, defaults.*list, path, key, readers);
  };
  check(&StackOptions::conv_heads, "conv_heads", convolutions);
  check(&StackOptions::conv_dim, "conv_dim", convolutions);
  check(&StackOptions::normalization, "normalization", taps);
  check(&StackOptions::renormalize_edges, "renormalize_edges", taps);
  check(&StackOptions::conv_bias, "conv_bias", biased);
  check(&StackOptions::filter_bias, "filter_bias", dynamic);
  check(&StackOptions::query, "query", dynamic);
  check(&StackOptions::average_ffn, "average_ffn", average);
}

/// Lists that no layer reads are misunderstandings, not decoration.
void check_unused_lists(const StackOptions& stack, const std::string& path) {
  const auto uses = [&](auto predicate) {
    return std::any_of(stack.block.begin(), stack.block.end(), predicate);
  };
  if (!stack.max_offsets.empty() &&
      !uses([](BlockKind k) { return k == BlockKind::kTalk; })) {
    fail_usage(
        path,
        ".max_offsets is given, but ",
        path,
        ".block has no talk layer");
  }
  if (!stack.kernel_sizes.empty() && !uses([](BlockKind k) {
        return k != BlockKind::kTalk && k != BlockKind::kAverageAttention;
      })) {
    fail_usage(
        path,
        ".kernel_sizes is given, but ",
        path,
        uses([](BlockKind k) { return k == BlockKind::kTalk; })
            ? ".block has talk layers only; their reach is max_offsets"
            : ".block has average_attention layers only, which see all");
  }
}

}  // namespace

void check_stack(
    const CheckedSide& side,
    int64_t dim,
    const std::string& model_path) {
  const StackOptions& stack = side.stack;
  const std::string path = concat(model_path, ".", side.key);
  check_at_least(stack.layers, 1, path + ".layers");
  check_at_least(stack.ffn_dim, 0, path + ".ffn_dim");
  if (stack.max_positions == 1)
    fail_usage(
        path,
        ".max_positions must be at least 2 (a symbol and </s>), or 0 for that "
        "of the model, but got 1");
  check_at_least(stack.max_positions, 0, path + ".max_positions");
  check_list(stack.block, stack.layers, path + ".block", false);
  check_list(stack.kernel_sizes, stack.layers, path + ".kernel_sizes", true);
  check_list(stack.max_offsets, stack.layers, path + ".max_offsets", true);
  check_list(stack.glu, stack.layers, path + ".glu", false);
  check_unused_lists(stack, path);
  check_variants(stack, path);
  const Keyed width{dim, model_path, "dim"};
  const Keyed heads{stack.heads, path, "heads"};
  check_at_least(heads.value, 1, heads.name());
  bool splits_model = side.attends;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    check_layer(stack, layer, path);
    if (has_linear1(stack.block_at(layer)))
      check_convolution(stack, layer, width, path);
    else
      splits_model = true;
  }
  if (splits_model)
    check_heads(heads, width);
}

BlockKind StackOptions::block_at(int64_t layer) const {
  return entry(block, layer, BlockKind::kDynamicConv);
}

int64_t StackOptions::kernel_size_at(int64_t layer) const {
  return entry(kernel_sizes, layer, 0);
}

int64_t StackOptions::max_offset_at(int64_t layer) const {
  return entry(max_offsets, layer, 0);
}

int64_t StackOptions::conv_heads_at(int64_t layer) const {
  const int64_t own = entry(conv_heads, layer, 0);
  return own != 0 ? own : heads;
}

int64_t StackOptions::conv_dim_at(int64_t layer, int64_t dim) const {
  const int64_t own = entry(conv_dim, layer, 0);
  return own != 0 ? own : dim;
}

bool StackOptions::glu_at(int64_t layer) const {
  return entry(glu, layer, true);
}

kernels::Normalization StackOptions::normalization_at(int64_t layer) const {
  return entry(normalization, layer, kernels::Normalization::kSoftmax);
}

bool StackOptions::renormalize_edges_at(int64_t layer) const {
  return entry(renormalize_edges, layer, false);
}

bool StackOptions::conv_bias_at(int64_t layer) const {
  return entry(conv_bias, layer, false);
}

bool StackOptions::filter_bias_at(int64_t layer) const {
  return entry(filter_bias, layer, false);
}

QuerySource StackOptions::query_at(int64_t layer) const {
  return entry(query, layer, QuerySource::kConvInput);
}

bool StackOptions::average_ffn_at(int64_t layer) const {
  return entry(average_ffn, layer, true);
}

}  // namespace seqconv
