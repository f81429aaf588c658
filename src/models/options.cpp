#include "seqconv/models/options.h"

#include <algorithm>

namespace seqconv {
namespace {

/// The entry of a layer in a list of one or of `layers` entries; 0 if empty.
template <class T>
T entry(const std::vector<T>& list, int64_t layer, T missing) {
  if (list.empty())
    return missing;
  return list.size() == 1 ? list[0] : list.at(static_cast<size_t>(layer));
}

template <class T>
void check_list(
    const std::vector<T>& list,
    int64_t layers,
    const std::string& key,
    bool may_be_empty) {
  const auto size = static_cast<int64_t>(list.size());
  if ((size == 0 && may_be_empty) || size == 1 || size == layers)
    return;
  fail_usage(
      key,
      " must have 1 or ",
      layers,
      " entries (one a layer), but got ",
      size);
}

void check_rate(double value, const std::string& key) {
  if (!(value >= 0 && value < 1))
    fail_usage(key, " must be in [0, 1), but got ", value);
}

constexpr int64_t kMaxSize = 1 << 20;  // more is a slip of the pen

void check_at_least(int64_t value, int64_t least, const std::string& key) {
  if (value < least || value > kMaxSize) {
    fail_usage(
        key,
        " must be between ",
        least,
        " and ",
        kMaxSize,
        ", but got ",
        value);
  }
}

void check_heads(int64_t heads, int64_t dim, const std::string& key) {
  check_at_least(heads, 1, key);
  if (dim % heads != 0) {
    fail_usage(
        key,
        " must divide model.dim, but got ",
        heads,
        " heads for dim = ",
        dim);
  }
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
      check_at_least(kernel, 1, path + ".kernel_sizes" + at);
      break;
    case BlockKind::kTalk:
      check_at_least(offset, 1, path + ".max_offsets" + at);
      break;
    case BlockKind::kSelfAttention:
      check_at_least(kernel, 0, path + ".kernel_sizes" + at);
      if (stack.glu)
        fail_usage(
            path,
            ".glu = true contradicts ",
            path,
            ".block = \"self_attention\": its projections replace linear1 and "
            "the gate; set glu = false",
            at);
      break;
  }
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
  if (!stack.kernel_sizes.empty() &&
      !uses([](BlockKind k) { return k != BlockKind::kTalk; })) {
    fail_usage(
        path,
        ".kernel_sizes is given, but ",
        path,
        ".block has talk layers only; their reach is max_offsets");
  }
}

void check_stack(
    const StackOptions& stack,
    int64_t dim,
    const std::string& path) {
  check_at_least(stack.layers, 1, path + ".layers");
  check_list(stack.block, stack.layers, path + ".block", false);
  check_list(stack.kernel_sizes, stack.layers, path + ".kernel_sizes", true);
  check_list(stack.max_offsets, stack.layers, path + ".max_offsets", true);
  check_heads(stack.heads, dim, path + ".heads");
  if (stack.conv_heads != 0)
    check_heads(stack.conv_heads, dim, path + ".conv_heads");
  check_unused_lists(stack, path);
  for (int64_t layer = 0; layer < stack.layers; ++layer)
    check_layer(stack, layer, path);
}

}  // namespace

BlockKind StackOptions::block_at(int64_t layer) const {
  return entry(block, layer, BlockKind::kDynamicConv);
}

int64_t StackOptions::kernel_size_at(int64_t layer) const {
  return entry<int64_t>(kernel_sizes, layer, 0);
}

int64_t StackOptions::max_offset_at(int64_t layer) const {
  return entry<int64_t>(max_offsets, layer, 0);
}

void ModelOptions::validate(const std::string& path) const {
  check_at_least(dim, 1, path + ".dim");
  if (positions == PositionKind::kSinusoidal && dim < 4)
    fail_usage(
        path,
        ".dim must be at least 4 for sinusoidal positions, but "
        "got ",
        dim);
  check_at_least(ffn_dim, 1, path + ".ffn_dim");
  check_at_least(max_positions, 2, path + ".max_positions");
  check_rate(dropout, path + ".dropout");
  check_rate(attention_dropout, path + ".attention_dropout");
  check_rate(activation_dropout, path + ".activation_dropout");
  check_rate(input_dropout, path + ".input_dropout");
  check_rate(weight_dropout, path + ".weight_dropout");
  check_stack(encoder, dim, path + ".encoder");
  check_stack(decoder, dim, path + ".decoder");
}

}  // namespace seqconv
