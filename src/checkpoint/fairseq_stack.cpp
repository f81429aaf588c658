#include <algorithm>

#include "clues.h"

namespace seqconv {
namespace {

using Numbers = Clues::Numbers;

/// One value for all when they are equal.
template <class List>
List shortened(List list) {
  if (std::all_of(list.begin(), list.end(), [&](const auto& entry) {
        return entry == list[0];
      }))
    list.resize(1);
  return list;
}

/// The layers of one side.
class StackReader {
 public:
  StackReader(Clues& clues, const std::string& side, int64_t dim)
      : clues_(clues), side_(side), dim_(dim) {
    if (clues.preset())
      preset_ = side == "encoder" ? &clues.preset()->encoder
                                  : &clues.preset()->decoder;
  }

  StackOptions read() {
    stack_.layers = count_layers();
    stack_.block.clear();
    LayerFlags glu;
    for (int64_t layer = 0; layer < stack_.layers; ++layer) {
      stack_.block.push_back(kind(layer));
      glu.push_back(gated(layer));
    }
    stack_.block = shortened(stack_.block);
    note("block", enum_name(stack_.block_at(0)), "names of tensors");
    stack_.glu = shortened(glu);
    note("glu", std::vector<bool>(stack_.glu), "shapes of linear1");
    read_conv_dim();
    read_heads();
    read_widths();
    read_normalization();
    return stack_;
  }

 private:
  std::string key(const std::string& name) const {
    return "model." + side_ + "." + name;
  }
  void note(const std::string& name, const Json& value, const char* reason) {
    clues_.note(key(name), value, reason);
  }
  std::string place(int64_t layer, const std::string& name) const {
    return concat(side_, ".layers.", layer, ".", name);
  }

  int64_t count_layers() {
    int64_t layers = 0;
    while (clues_.has_prefix(place(layers, "")))
      ++layers;
    if (layers == 0)
      fail(
          clues_.where(),
          ": the checkpoint must hold the layers of a LightConv, DynamicConv "
          "or "
          "TaLK model, but has no ",
          place(0, "*"));
    return clues_.decide<int64_t>(
        key("layers"),
        layers,
        place(0, "*"),
        clues_.integer(side_ + "_layers"),
        side_ + "_layers",
        {});
  }

  BlockKind kind(int64_t layer) const {
    if (clues_.has(place(layer, "conv.weight")))
      return BlockKind::kLightConv;
    if (clues_.has(place(layer, "conv.weight_linear.weight")))
      return BlockKind::kDynamicConv;
    if (clues_.has(place(layer, "conv.offsets.weight")))
      return BlockKind::kTalk;
    fail(
        clues_.where(),
        ": layer ",
        layer,
        " of the ",
        side_,
        " must have a LightConv, DynamicConv or TaLK convolution (",
        place(layer, "conv.*"),
        "), but has ",
        clues_.has_prefix(place(layer, "self_attn"))
            ? "self-attention: a Transformer, which is not read"
            : "none");
  }

  /// Channels of a layer's convolution.
  int64_t conv_dim(int64_t layer) const {
    return clues_.shape(place(layer, "linear2.weight"), 2)[1];
  }

  /// Whether linear1 makes a gate.
  bool gated(int64_t layer) const {
    return clues_.shape(place(layer, "linear1.weight"), 2)[0] ==
        2 * conv_dim(layer);
  }

  void read_conv_dim() {
    const std::string argument = side_ + "_conv_dim";
    const int64_t width = clues_.decide<int64_t>(
        key("conv_dim"),
        conv_dim(0),
        place(0, "linear2.weight"),
        clues_.integer(argument),
        argument,
        {});
    for (int64_t layer = 1; layer < stack_.layers; ++layer)
      SEQCONV_CHECK(
          conv_dim(layer) == width,
          clues_.where(),
          ": all convolutions of the ",
          side_,
          " must be as wide, but that of layer 0 has ",
          width,
          " channels and that of layer ",
          layer,
          " has ",
          conv_dim(layer));
    stack_.conv_dim = {width == dim_ ? 0 : width};
  }

  /// Heads that a layer's own tensors tell.
  std::optional<int64_t> heads_by_shape(int64_t layer) const {
    switch (stack_.block_at(layer)) {
      case BlockKind::kLightConv:
        return clues_.shape(place(layer, "conv.weight"), 2)[0];
      case BlockKind::kTalk: {
        const int64_t rows =
            clues_.shape(place(layer, "conv.offsets.weight"), 2)[0];
        return side_ == "encoder" ? rows / 2 : rows;
      }
      default:
        return {};
    }
  }

  /// Taps times heads of a dynamic convolution.
  int64_t filter_rows(int64_t layer) const {
    return clues_.shape(place(layer, "conv.weight_linear.weight"), 2)[0];
  }

  void read_heads() {
    const std::string argument = side_ + "_attention_heads";
    std::optional<int64_t> given = clues_.integer(argument);
    const auto kernels = clues_.integers(side_ + "_kernel_size_list");
    if (!given && kernels && !kernels->empty() && kernels->front() > 0 &&
        stack_.block_at(0) == BlockKind::kDynamicConv)
      given = filter_rows(0) / kernels->front();
    std::optional<int64_t> preset;
    if (preset_)
      preset = preset_->heads;
    stack_.heads = clues_.decide<int64_t>(
        key("heads"),
        heads_by_shape(0),
        place(0, "conv"),
        given,
        argument,
        preset);
    for (int64_t layer = 1; layer < stack_.layers; ++layer)
      if (const auto heads = heads_by_shape(layer))
        SEQCONV_CHECK(
            *heads == stack_.heads,
            clues_.where(),
            ": all layers of the ",
            side_,
            " must have as many heads, but layer 0 has ",
            stack_.heads,
            " and layer ",
            layer,
            " has ",
            *heads);
  }

  /// What the stored list or the preset says of a layer.
  static std::optional<int64_t> entry(
      const std::optional<Numbers>& list,
      int64_t layer) {
    if (!list || list->empty())
      return {};
    if (list->size() == 1)
      return list->front();
    const auto at = static_cast<size_t>(layer);
    return at < list->size() ? std::optional((*list)[at]) : std::nullopt;
  }

  void read_widths() {
    const std::string argument = side_ + "_kernel_size_list";
    const auto given = clues_.integers(argument);
    Numbers kernels, offsets;
    for (int64_t layer = 0; layer < stack_.layers; ++layer) {
      const BlockKind kind = stack_.block_at(layer);
      const bool talk = kind == BlockKind::kTalk;
      std::optional<int64_t> preset;
      if (preset_ && layer < preset_->layers)
        preset = talk ? preset_->max_offset_at(layer)
                      : preset_->kernel_size_at(layer);
      const auto [shape, tensor] = width_by_shape(layer);
      const int64_t width = clues_.decide<int64_t>(
          concat(key(talk ? "max_offsets" : "kernel_sizes"), "[", layer, "]"),
          shape,
          tensor,
          entry(given, layer),
          argument,
          preset);
      kernels.push_back(talk ? 0 : width);
      offsets.push_back(talk ? width : 0);
    }
    const auto used = [](const Numbers& widths) {
      return std::any_of(widths.begin(), widths.end(), [](int64_t width) {
        return width != 0;
      });
    };
    if (used(kernels))
      stack_.kernel_sizes = kernels;
    if (used(offsets))
      stack_.max_offsets = offsets;
  }

  /// The kernel's width and the tensor that tells it.
  std::pair<std::optional<int64_t>, std::string> width_by_shape(int64_t layer) {
    switch (stack_.block_at(layer)) {
      case BlockKind::kLightConv: {
        const std::string name = place(layer, "conv.weight");
        return {clues_.shape(name, 2).back(), name};
      }
      case BlockKind::kDynamicConv: {
        const std::string name = place(layer, "conv.weight_linear.weight");
        const int64_t rows = filter_rows(layer);
        SEQCONV_CHECK(
            stack_.heads > 0 && rows % stack_.heads == 0,
            clues_.where(),
            ": '",
            name,
            "' must have as many rows for each of ",
            stack_.heads,
            " heads, but has ",
            rows);
        return {rows / stack_.heads, name};
      }
      default:
        return {};
    }
  }

  void read_normalization() {
    if (stack_.block_at(0) == BlockKind::kTalk)
      return;
    using kernels::Normalization;
    const char* reason = "assumed: fairseq's default";
    if (const auto softmax = clues_.boolean("weight_softmax")) {
      stack_.normalization = {
          *softmax ? Normalization::kSoftmax : Normalization::kNone};
      reason = "stored argument weight_softmax";
    } else if (preset_) {
      stack_.normalization = preset_->normalization;
      reason = "preset";
    }
    note("normalization", enum_name(stack_.normalization[0]), reason);
  }

  Clues& clues_;
  std::string side_;
  int64_t dim_;
  const StackOptions* preset_ = nullptr;
  StackOptions stack_;
};

}  // namespace

StackOptions read_stack(Clues& clues, const std::string& side, int64_t dim) {
  return StackReader(clues, side, dim).read();
}

}  // namespace seqconv
