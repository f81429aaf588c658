#include "seqconv/checkpoint/fairseq_architecture.h"

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

  /// Whether linear1 makes a gate; its convolution must be as wide as the
  /// model.
  bool gated(int64_t layer) const {
    const std::string inner = place(layer, "linear2.weight");
    const int64_t width = clues_.shape(inner, 2)[1];
    SEQCONV_CHECK(
        width == dim_,
        clues_.where(),
        ": the convolutions must be as wide as the model (",
        dim_,
        "), but '",
        inner,
        "' says ",
        width);
    return clues_.shape(place(layer, "linear1.weight"), 2)[0] == 2 * width;
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

/// Width of the model: what a side's embeddings give.
int64_t read_dim(Clues& clues, const std::string& side) {
  const std::string plain = side + ".embed_tokens.weight";
  const std::string band = side + ".embed_tokens.embeddings.0.1.weight";
  const bool banded = clues.has(band);
  const std::string argument = side + "_embed_dim";
  return clues.decide<int64_t>(
      "model.dim",
      banded ? clues.shape(band, 2)[0] : clues.shape(plain, 2)[1],
      banded ? band : plain,
      clues.integer(argument),
      argument,
      {});
}

int64_t read_ffn_dim(Clues& clues, const std::string& side) {
  const std::string name = side + ".layers.0.fc1.weight";
  const std::string argument = side + "_ffn_embed_dim";
  return clues.decide<int64_t>(
      "model.ffn_dim",
      clues.shape(name, 2)[0],
      name,
      clues.integer(argument),
      argument,
      {});
}

void check_same(
    const Clues& clues,
    const char* what,
    int64_t encoder,
    int64_t decoder) {
  SEQCONV_CHECK(
      encoder == decoder,
      clues.where(),
      ": encoder and decoder must have the same ",
      what,
      ", but have ",
      encoder,
      " and ",
      decoder);
}

/// A final norm is there when each block begins with one, and only then.
NormPlacement read_norm(Clues& clues) {
  const bool encoder = clues.has("encoder.layer_norm.weight");
  const bool decoder = clues.has("decoder.layer_norm.weight");
  SEQCONV_CHECK(
      encoder == decoder,
      clues.where(),
      ": encoder and decoder must both be post-norm or both pre-norm, but only "
      "the ",
      encoder ? "encoder" : "decoder",
      " has a final layer norm");
  for (const char* side : {"encoder", "decoder"}) {
    const std::string argument = concat(side, "_normalize_before");
    const std::optional<bool> before = clues.boolean(argument);
    SEQCONV_CHECK(
        !before || *before == encoder,
        clues.where(),
        ": the stored argument ",
        argument,
        " contradicts the tensors, where the final layer norm is ",
        encoder ? "there" : "not there");
  }
  const NormPlacement norm =
      encoder ? NormPlacement::kPre : NormPlacement::kPost;
  clues.note(
      "model.norm",
      enum_name(norm),
      encoder ? "final layer norms are there" : "no final layer norms");
  return norm;
}

/// Rates matter to further training only: the library's own where none is said.
void read_rates(const Clues& clues, ModelOptions& options) {
  if (clues.preset()) {
    options.dropout = clues.preset()->dropout;
    options.attention_dropout = clues.preset()->attention_dropout;
    options.activation_dropout = clues.preset()->activation_dropout;
    options.input_dropout = clues.preset()->input_dropout;
    options.weight_dropout = clues.preset()->weight_dropout;
  }
  const auto read = [&](const char* argument, double& rate) {
    rate = clues.real(argument).value_or(rate);
  };
  read("dropout", options.dropout);
  read("attention_dropout", options.attention_dropout);
  read("relu_dropout", options.activation_dropout);
  read("input_dropout", options.input_dropout);
  read("weight_dropout", options.weight_dropout);
}

}  // namespace

Task task_of(const FairseqCheckpoint& checkpoint) {
  return Clues(checkpoint, nullptr).has_prefix("encoder.")
      ? Task::kTranslation
      : Task::kLanguageModel;
}

DeducedArchitecture deduce_architecture(
    const FairseqCheckpoint& checkpoint,
    const ModelOptions* preset) {
  Clues clues(checkpoint, preset);
  DeducedArchitecture found{.task = task_of(checkpoint)};
  ModelOptions& options = found.options = ModelOptions::defaults(found.task);
  clues.note("task", enum_name(found.task), "names of tensors");
  options.dim = read_dim(clues, "decoder");
  options.decoder = StackReader(clues, "decoder", options.dim).read();
  options.ffn_dim = read_ffn_dim(clues, "decoder");
  if (found.task == Task::kTranslation) {
    check_same(clues, "width", read_dim(clues, "encoder"), options.dim);
    options.encoder = StackReader(clues, "encoder", options.dim).read();
    check_same(
        clues,
        "feed-forward width",
        read_ffn_dim(clues, "encoder"),
        options.ffn_dim);
    options.norm = read_norm(clues);
  }
  deduce_embeddings(clues, found.task, options);
  read_rates(clues, options);
  try {
    options.validate("model", found.task);
  } catch (const UsageError& error) {
    fail(clues.where(), ": ", error.what());
  }
  found.decisions = clues.decisions();
  return found;
}

}  // namespace seqconv
