#include "model/checkpoint/fairseq_names.h"

#include <string_view>

#include "base/error.h"
#include "model/checkpoint/fairseq_mixers.h"

namespace seqconv::internal {
namespace {

using Parts = std::vector<FairseqRows>;

/// "rest" of "prefix" + "rest"; false when `text` begins otherwise.
bool strip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// The number at the front of a text, which loses it.
std::string strip_number(std::string_view& text) {
  const size_t end = text.find_first_not_of("0123456789");
  const std::string number(text.substr(0, end));
  text.remove_prefix(number.size());
  return number;
}

/// Names inside a layer: ours without "layerN.", theirs without "layers.N.".
/// Empty: fairseq has no such module.
class LayerNames {
 public:
  LayerNames(std::string theirs, bool encoder, int64_t dim)
      : theirs_(std::move(theirs)), encoder_(encoder), dim_(dim) {}

  void fill(std::string_view name, Correspondence& found) const {
    if (strip(name, "block."))
      return add(found, their_mixer_parameter(name));
    if (strip(name, "block_norm"))
      return fill_norm(name, encoder_ ? "0" : "conv_layer_norm", found);
    if (strip(name, "feed_forward_norm"))
      return fill_norm(name, encoder_ ? "1" : "final_layer_norm", found);
    if (strip(name, "cross_attention_norm"))
      return add(found, concat("encoder_attn_layer_norm", name));
    if (strip(name, "cross_attention."))
      return fill_attention(name, found);
    if (strip(name, "feed_forward."))
      return add(found, std::string(name));
  }

 private:
  void add(Correspondence& found, const std::string& name) const {
    found.alternatives.push_back({{theirs_ + name}});
  }

  /// The encoder's norms have changed their names.
  void fill_norm(std::string_view rest, const std::string& norm, Correspondence& found) const {
    if (!encoder_)
      return add(found, concat(norm, rest));
    add(found, concat("layer_norms.", norm, rest));
    add(found, concat("layer_norm", norm == "0" ? 1 : 2, rest));
    found.main = 1;
  }

  /// Query, key and value lie apart, or in 2019 as in_proj one below the other.
  void fill_attention(std::string_view name, Correspondence& found) const {
    const std::string attention = theirs_ + "encoder_attn.";
    if (name.starts_with("out_proj"))
      return add(found, concat("encoder_attn.", name));
    const bool query = strip(name, "query_proj.");
    if (!query)
      strip(name, "key_value_proj.");
    const std::string kind(name);  // weight or bias
    if (query)
      found.alternatives.push_back({{attention + "q_proj." + kind}});
    else
      found.alternatives.push_back(
          {{attention + "k_proj." + kind}, {attention + "v_proj." + kind}});
    const std::string fused = attention + "in_proj_" + kind;
    found.alternatives.push_back(
        {query ? FairseqRows{fused, 0, dim_, 3 * dim_}
               : FairseqRows{fused, dim_, 2 * dim_, 3 * dim_}});
  }

  std::string theirs_;
  bool encoder_;
  int64_t dim_;
};

/// "table2" -> ".2.0.weight", "projection2" -> ".2.1.weight".
std::string band_name(std::string_view name) {
  const bool table = strip(name, "table");
  if (!table)
    strip(name, "projection");
  return concat(".", name, table ? ".0.weight" : ".1.weight");
}

void fill_embedding(const std::string& side, std::string_view name, Correspondence& found) {
  std::string theirs = side + "embed_tokens";
  if (name == "positions")
    theirs = side + "embed_positions.weight";
  else if (name == "projection")
    theirs = side + "project_in_dim.weight";
  else if (strip(name, "bands."))
    theirs += ".embeddings" + band_name(name);
  else
    theirs += ".weight";
  found.alternatives.push_back({{theirs}});
}

void fill_output(std::string_view name, Correspondence& found) {
  if (name == "projection") {
    found.alternatives.push_back({{"decoder.project_out_dim.weight"}});
    return;
  }
  if (!strip(name, "adaptive.")) {
    found.alternatives = {{{"decoder.embed_out"}}, {{"decoder.output_projection.weight"}}};
    found.main = 1;
    return;
  }
  std::string theirs = "decoder.adaptive_softmax.";
  if (name == "head")
    theirs += "head.weight";
  else if (name == "head_projection")
    theirs += "head.word_proj.0.weight";
  else if (name == "class_projection")
    theirs += "head.class_proj.weight";
  else if (strip(name, "tail")) {
    theirs += "tail." + strip_number(name);
    theirs += name == "_words" ? ".2.weight" : ".0.weight";
  }
  found.alternatives.push_back({{theirs}});
}

Correspondence place(const ParameterShape& ours, int64_t dim) {
  Correspondence found{ours, {}};
  std::string_view name = ours.name;
  if (strip(name, "output.")) {
    fill_output(name, found);
    return found;
  }
  const bool encoder = name.starts_with("encoder.");
  const std::string side = encoder ? "encoder." : "decoder.";
  strip(name, side);
  if (strip(name, "embedding.")) {
    fill_embedding(side, name, found);
  } else if (strip(name, "layer")) {
    const std::string layer = strip_number(name);
    strip(name, ".");
    LayerNames(side + "layers." + layer + ".", encoder, dim).fill(name, found);
  } else if (strip(name, "final_norm")) {
    found.alternatives.push_back({{concat(side, "layer_norm", name)}});
  }
  return found;
}

/// The adaptive softmax's names of matrices that are the input's.
void share_bands(const ModelOptions& options, int64_t tails, std::vector<SharedTensor>& shared) {
  const std::string input = "decoder.embed_tokens.embeddings.";
  const std::string softmax = "decoder.adaptive_softmax.";
  const int64_t width = options.adaptive.input_dim;
  const bool projected = width > 0 && width != options.dim;
  shared.push_back(
      {softmax + (projected ? "head.word_proj.1.weight" : "head.word_proj.weight"),
       input + "0.0.weight"});
  for (int64_t i = 0; i < tails; ++i) {
    const std::string tail = concat(softmax, "tail.", i);
    const std::string band = concat(input, i + 1);
    shared.push_back({tail + ".2.weight", band + ".0.weight"});
    if (options.adaptive.tie_projections)
      shared.push_back({tail + ".0.weight", band + ".1.weight"});
  }
}

std::vector<SharedTensor> shared_tensors(
    const ModelOptions& options, Task task, int64_t vocabulary) {
  std::vector<SharedTensor> shared;
  const bool all = task == Task::kTranslation && options.tie == Tying::kAll;
  const std::string table = all ? "encoder.embed_tokens.weight" : "decoder.embed_tokens.weight";
  if (all)
    shared.push_back({"decoder.embed_tokens.weight", table});
  if (options.tie == Tying::kNone)
    return shared;
  const std::vector<int64_t>& cutoffs = options.adaptive.softmax_cutoffs;
  if (cutoffs.empty()) {
    shared.push_back({"decoder.output_projection.weight", table});
    shared.push_back({"decoder.embed_out", table});
  } else {
    const auto bands = band_ends(cutoffs, vocabulary).size();
    share_bands(options, static_cast<int64_t>(bands) - 1, shared);
  }
  return shared;
}

void check_side(const ModelOptions& options, Task task, Side side) {
  const bool encoder = side == Side::kEncoder;
  const StackOptions& stack = encoder ? options.encoder : options.decoder;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const std::string why = why_not_theirs(layer_options(options, task, side, i).mixer);
    if (!why.empty())
      fail_usage(
          "fairseq has no module for ", encoder ? "encoder" : "decoder", " layer ", i, ": ", why);
  }
}

}  // namespace

FairseqLayout fairseq_layout(
    const ModelOptions& options, Task task, const VocabularySizes& vocabulary) {
  if (task == Task::kTranslation)
    check_side(options, task, Side::kEncoder);
  check_side(options, task, Side::kDecoder);
  FairseqLayout layout;
  for (const ParameterShape& ours : list_parameters(options, task, vocabulary))
    layout.parameters.push_back(place(ours, options.dim));
  layout.shared = shared_tensors(options, task, vocabulary.target);
  return layout;
}

bool is_bookkeeping(const std::string& name) {
  static constexpr std::string_view kEnds[] = {"version", "_float_tensor", "conv.conv_bias"};
  for (const std::string_view end : kEnds)
    if (name.ends_with(end) &&
        (name.size() == end.size() || name[name.size() - end.size() - 1] == '.'))
      return true;
  return false;
}

}  // namespace seqconv::internal
