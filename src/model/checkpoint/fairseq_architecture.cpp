#include "model/checkpoint/fairseq_architecture.h"

#include "model/checkpoint/clues.h"

namespace seqconv::internal {
namespace {

/// Width of the model: what a side's embeddings give, after a map if there is
/// one.
int64_t read_dim(Clues& clues, const std::string& side) {
  std::string tensor = side + ".embed_tokens.weight";
  size_t axis = 1;
  for (const char* map : {".embed_tokens.embeddings.0.1", ".project_in_dim"})
    if (clues.has(side + map + ".weight")) {
      tensor = side + map + ".weight";
      axis = 0;
    }
  const std::string argument = side + "_embed_dim";
  return clues.decide<int64_t>(
      "model.dim", clues.shape(tensor, 2)[axis], tensor, clues.integer(argument), argument, {});
}

int64_t read_ffn_dim(Clues& clues, const std::string& side, const char* key) {
  const std::string name = side + ".layers.0.fc1.weight";
  const std::string argument = side + "_ffn_embed_dim";
  return clues.decide<int64_t>(
      key, clues.shape(name, 2)[0], name, clues.integer(argument), argument, {});
}

/// A final norm is there when each block of the side begins with one, and only
/// then.
NormPlacement read_norm(const Clues& clues, const std::string& side) {
  const bool before = clues.has(side + ".layer_norm.weight");
  const std::string argument = side + "_normalize_before";
  SEQCONV_CHECK(
      clues.boolean(argument).value_or(before) == before,
      clues.where(),
      ": the stored argument ",
      argument,
      " contradicts the tensors, where the final layer norm is ",
      before ? "there" : "not there");
  return before ? NormPlacement::kPre : NormPlacement::kPost;
}

/// One placement for the model, and where the encoder has another its own.
void read_norms(Clues& clues, ModelOptions& options) {
  options.norm = read_norm(clues, "decoder");
  const NormPlacement encoder = read_norm(clues, "encoder");
  const auto reason = [](NormPlacement norm) {
    return norm == NormPlacement::kPre ? "final layer norms are there" : "no final layer norms";
  };
  clues.note("model.norm", enum_name(options.norm), reason(options.norm));
  if (encoder == options.norm)
    return;
  options.encoder.norm = as_side_norm(encoder);
  clues.note("model.encoder.norm", enum_name(options.encoder.norm), reason(encoder));
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
  return Clues(checkpoint, nullptr).has_prefix("encoder.") ? Task::kTranslation
                                                           : Task::kLanguageModel;
}

DeducedArchitecture deduce_architecture(
    const FairseqCheckpoint& checkpoint, const ModelOptions* preset) {
  Clues clues(checkpoint, preset);
  DeducedArchitecture found{.task = task_of(checkpoint)};
  ModelOptions& options = found.options = ModelOptions::defaults(found.task);
  clues.note("task", enum_name(found.task), "names of tensors");
  options.dim = read_dim(clues, "decoder");
  options.decoder = read_stack(clues, "decoder", options.dim);
  options.ffn_dim = read_ffn_dim(clues, "decoder", "model.ffn_dim");
  if (found.task == Task::kTranslation) {
    const int64_t width = read_dim(clues, "encoder");
    SEQCONV_CHECK(
        width == options.dim,
        clues.where(),
        ": encoder and decoder must have the same width, but have ",
        width,
        " and ",
        options.dim);
    options.encoder = read_stack(clues, "encoder", options.dim);
    const int64_t ffn = read_ffn_dim(clues, "encoder", "model.encoder.ffn_dim");
    options.encoder.ffn_dim = ffn == options.ffn_dim ? 0 : ffn;
    read_norms(clues, options);
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

}  // namespace seqconv::internal
