#include <algorithm>

#include "model/checkpoint/clues.h"
#include "model/checkpoint/fairseq_mixers.h"

namespace seqconv::internal {
namespace {

using Numbers = Clues::Numbers;

/// One value for all when they are equal.
template <class List>
List shortened(List list) {
  if (std::all_of(list.begin(), list.end(), [&](const auto& entry) { return entry == list[0]; }))
    list.resize(1);
  return list;
}

/// The layers of one side.
class StackReader {
 public:
  StackReader(Clues& clues, const std::string& side, int64_t dim)
      : clues_(clues), side_(side), dim_(dim) {
    if (clues.preset())
      preset_ = side == "encoder" ? &clues.preset()->encoder : &clues.preset()->decoder;
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
  std::string key(const std::string& name) const { return "model." + side_ + "." + name; }
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
          ": the checkpoint must hold the layers of a LightConv, DynamicConv or TaLK model, but "
          "has no ",
          place(0, "*"));
    return clues_.decide<int64_t>(
        key("layers"),
        layers,
        place(0, "*"),
        clues_.integer(side_ + "_layers"),
        side_ + "_layers",
        {});
  }

  MixerKind kind(int64_t layer) const {
    for (const FairseqMixer& mixer : fairseq_mixers())
      if (clues_.has(place(layer, mixer.tensor)))
        return mixer.kind;
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
    return clues_.shape(place(layer, "linear1.weight"), 2)[0] == 2 * conv_dim(layer);
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

  /// The tensor that tells heads and kernel of a layer.
  std::string telling(int64_t layer) const {
    return place(layer, fairseq_mixer(stack_.block_at(layer))->tensor);
  }
  const Numbers& telling_shape(int64_t layer) const { return clues_.shape(telling(layer), 2); }

  std::optional<int64_t> heads_of(int64_t layer) const {
    return heads_by_shape(
        stack_.block_at(layer),
        telling_shape(layer),
        /*causal=*/side_ == "decoder");
  }

  void read_heads() {
    const std::string argument = side_ + "_attention_heads";
    std::optional<int64_t> given = clues_.integer(argument);
    const auto kernels = clues_.integers(side_ + "_kernel_size_list");
    if (!given && kernels && !kernels->empty() && kernels->front() > 0 && !heads_of(0))
      given = telling_shape(0)[0] / kernels->front();  // a row a head and tap
    std::optional<int64_t> preset;
    if (preset_)
      preset = preset_->heads;
    stack_.heads = clues_.decide<int64_t>(
        key("heads"), heads_of(0), place(0, "conv"), given, argument, preset);
    for (int64_t layer = 1; layer < stack_.layers; ++layer)
      if (const auto heads = heads_of(layer))
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
  static std::optional<int64_t> entry(const std::optional<Numbers>& list, int64_t layer) {
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
      const bool talk = is_talk(stack_.block_at(layer));
      std::optional<int64_t> preset;
      if (preset_ && layer < preset_->layers)
        preset = talk ? preset_->max_offset_at(layer) : preset_->kernel_size_at(layer);
      const int64_t width = clues_.decide<int64_t>(
          concat(key(talk ? "max_offsets" : "kernel_sizes"), "[", layer, "]"),
          kernel_size_of(layer),
          telling(layer),
          entry(given, layer),
          argument,
          preset);
      kernels.push_back(talk ? 0 : width);
      offsets.push_back(talk ? width : 0);
    }
    const auto used = [](const Numbers& widths) {
      return std::any_of(widths.begin(), widths.end(), [](int64_t width) { return width != 0; });
    };
    if (used(kernels))
      stack_.kernel_sizes = kernels;
    if (used(offsets))
      stack_.max_offsets = offsets;
  }

  /// The kernel's width by the tensor that tells it.
  std::optional<int64_t> kernel_size_of(int64_t layer) const {
    const Numbers& shape = telling_shape(layer);
    const auto width = kernel_size_by_shape(stack_.block_at(layer), shape, stack_.heads);
    SEQCONV_CHECK(
        width != -1,
        clues_.where(),
        ": '",
        telling(layer),
        "' must have as many rows for each of ",
        stack_.heads,
        " heads, but has ",
        shape[0]);
    return width;
  }

  void read_normalization() {
    if (is_talk(stack_.block_at(0)))
      return;
    using kernels::Normalization;
    const char* reason = "assumed: fairseq's default";
    if (const auto softmax = clues_.boolean("weight_softmax")) {
      stack_.normalization = {*softmax ? Normalization::kSoftmax : Normalization::kNone};
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

}  // namespace seqconv::internal
