#include "model/options.h"

#include <cmath>

#include "base/options.h"
#include "base/special_ids.h"
#include "model/size_checks.h"

namespace seqconv::internal {
namespace {

std::string write_list(const std::vector<int64_t>& list) {
  return Json(list).dump();
}

/// Translation models may have an adaptive softmax, with words of its own.
void check_input_not_adaptive(const ModelOptions& model, const std::string& path) {
  const bool softmax = !model.adaptive.softmax_cutoffs.empty();
  const Json given = write_options(model.adaptive);
  const Json defaults = write_options(AdaptiveOptions{});
  for (const auto& [key, value] : given.items()) {
    const bool of_softmax = key.starts_with("softmax_") || key == "fairseq_compatible";
    if (value != defaults[key] && !(softmax && of_softmax))
      fail_usage(
          path,
          ".adaptive.",
          key,
          of_softmax
              ? " has no effect without softmax_cutoffs"
              : " is for language models (task = \"language_model\"), but the task is translation");
  }
  if (softmax && model.tie != Tying::kNone)
    fail_usage(
        path,
        ".tie must be \"none\" where a translation model has an adaptive softmax, whose words are "
        "its own, but got \"",
        enum_name(model.tie),
        "\"");
}

/// What a decoder alone cannot have.
void check_language_model(const ModelOptions& model, const std::string& path) {
  if (write_options(model.encoder) != write_options(ModelOptions{}.encoder))
    fail_usage(
        path, ".encoder is given, but a language model has a decoder only; set ", path, ".decoder");
  const NormPlacement norm = model.norm_of(model.decoder);
  if (norm != NormPlacement::kPre)
    fail_usage(
        path,
        model.decoder.norm == SideNorm::kAuto ? "" : ".decoder",
        ".norm must be \"pre\" in a language model, but got \"",
        enum_name(norm),
        "\"");
}

/// Ascending, above the special symbols.
void check_cutoffs(const std::vector<int64_t>& cutoffs, const std::string& key) {
  int64_t least = kSpecialIds;
  for (const int64_t cutoff : cutoffs) {
    if (cutoff < least)
      fail_usage(
          key,
          " must be ascending and at least ",
          kSpecialIds,
          " (the special symbols), but got ",
          write_list(cutoffs));
    least = cutoff + 1;
  }
}

/// Every band keeps a width of one at least; V may add one to the cutoffs.
void check_widths(int64_t width, double factor, size_t bands, const std::string& key) {
  const double last = static_cast<double>(width) / std::pow(factor, static_cast<double>(bands));
  if (!(factor >= 1) || !(last >= 1))
    fail_usage(
        key,
        " must be at least 1 and leave the last band a width of 1, but ",
        factor,
        " divides ",
        width,
        " by itself ",
        bands,
        " times");
}

/// Words that input and output share need one width; one table has it from
/// input_dim and output_dim, bands have the model's.
void check_tied_widths(const ModelOptions& model, const std::string& path, Task task) {
  if (model.tie == Tying::kNone)
    return;
  const auto reject = [&](const auto&... why) {
    fail_usage(
        path,
        ".tie = \"",
        enum_name(model.tie),
        "\" ",
        why...,
        "; set ",
        path,
        ".tie = \"none\" for matrices of their own");
  };
  if (!model.adaptive.softmax_cutoffs.empty()) {
    if (model.output_width() != model.dim)
      reject(
          "makes words of the adaptive input those of the softmax, which needs ",
          path,
          ".output_dim = 0, but got ",
          model.output_dim);
  } else if (model.input_width() != model.output_width()) {
    reject(
        "makes the embedding the output matrix, which needs ",
        path,
        ".input_dim and ",
        path,
        ".output_dim to be equal, but got ",
        model.input_width(),
        " and ",
        model.output_width());
  }
  if (task == Task::kTranslation && model.tie == Tying::kAll && model.input_width() != model.dim)
    reject(
        "shares the encoder's embedding, whose width is ",
        path,
        ".dim = ",
        model.dim,
        ", but ",
        path,
        ".input_dim is ",
        model.input_dim);
}

void check_tied_bands(const ModelOptions& model, const std::string& path) {
  const AdaptiveOptions& adaptive = model.adaptive;
  if (model.tie != Tying::kNone &&
      (adaptive.softmax_cutoffs != adaptive.input_cutoffs ||
       adaptive.softmax_factor != adaptive.input_factor))
    fail_usage(
        path,
        ".tie = \"",
        enum_name(model.tie),
        "\" shares the words of input and softmax, which needs equal cutoffs and factors, but got ",
        write_list(adaptive.input_cutoffs),
        " / ",
        adaptive.input_factor,
        " and ",
        write_list(adaptive.softmax_cutoffs),
        " / ",
        adaptive.softmax_factor,
        "; set ",
        path,
        ".tie = \"none\" for matrices of their own");
  if (adaptive.tie_projections && (model.tie == Tying::kNone || adaptive.input_cutoffs.empty()))
    fail_usage(
        path,
        ".adaptive.tie_projections = true needs an adaptive input and softmax with ",
        path,
        ".tie = \"decoder\"");
}

void check_adaptive(const ModelOptions& model, const std::string& path) {
  const AdaptiveOptions& adaptive = model.adaptive;
  const std::string at = path + ".adaptive";
  check_cutoffs(adaptive.softmax_cutoffs, at + ".softmax_cutoffs");
  check_cutoffs(adaptive.input_cutoffs, at + ".input_cutoffs");
  check_rate(adaptive.softmax_dropout, at + ".softmax_dropout");
  check_at_least(adaptive.input_dim, 0, at + ".input_dim");
  check_tied_bands(model, path);
  if (adaptive.input_dim > 0 && adaptive.input_cutoffs.empty())
    fail_usage(
        at,
        ".input_dim is given, but ",
        at,
        ".input_cutoffs is empty: the width of a single table is ",
        path,
        ".input_dim");
  if (model.input_dim > 0 && !adaptive.input_cutoffs.empty())
    fail_usage(
        path,
        ".input_dim is the width of a single table, but ",
        at,
        ".input_cutoffs is given: that of the first band is ",
        at,
        ".input_dim");
  check_widths(
      adaptive.input_dim > 0 ? adaptive.input_dim : model.dim,
      adaptive.input_factor,
      adaptive.input_cutoffs.size(),
      at + ".input_factor");
  if (model.tie == Tying::kNone)  // else the tails are as wide as the bands
    check_widths(
        model.output_width(),
        adaptive.softmax_factor,
        adaptive.softmax_cutoffs.size(),
        at + ".softmax_factor");
}

}  // namespace

ModelOptions ModelOptions::defaults(Task task) {
  ModelOptions options;
  if (task == Task::kLanguageModel)
    options.norm = NormPlacement::kPre;
  return options;
}

NormPlacement ModelOptions::norm_of(const StackOptions& side) const {
  switch (side.norm) {
    case SideNorm::kAuto:
      return norm;
    case SideNorm::kPost:
      return NormPlacement::kPost;
    case SideNorm::kPre:
      return NormPlacement::kPre;
  }
  fail("unknown placement of norms");
}

PositionKind ModelOptions::positions_of(const StackOptions& side) const {
  switch (side.positions) {
    case SidePositions::kAuto:
      return positions;
    case SidePositions::kSinusoidal:
      return PositionKind::kSinusoidal;
    case SidePositions::kLearned:
      return PositionKind::kLearned;
    case SidePositions::kNone:
      return PositionKind::kNone;
  }
  fail("unknown kind of positions");
}

void ModelOptions::validate(const std::string& path, Task task) const {
  check_at_least(dim, 1, path + ".dim");
  const auto has_sines = [&](const StackOptions& side) {
    return positions_of(side) == PositionKind::kSinusoidal;
  };
  if (dim < 4 && (has_sines(decoder) || (task == Task::kTranslation && has_sines(encoder))))
    fail_usage(path, ".dim must be at least 4 for sinusoidal positions, but got ", dim);
  check_at_least(ffn_dim, 1, path + ".ffn_dim");
  check_at_least(input_dim, 0, path + ".input_dim");
  check_at_least(output_dim, 0, path + ".output_dim");
  check_at_least(max_positions, 2, path + ".max_positions");
  check_rate(dropout, path + ".dropout");
  check_rate(attention_dropout, path + ".attention_dropout");
  check_rate(activation_dropout, path + ".activation_dropout");
  check_rate(input_dropout, path + ".input_dropout");
  check_rate(weight_dropout, path + ".weight_dropout");
  switch (task) {
    case Task::kTranslation:
      check_stack({encoder, "encoder", /*attends=*/false}, *this, path);
      check_input_not_adaptive(*this, path);
      check_adaptive(*this, path);
      break;
    case Task::kLanguageModel:
      check_language_model(*this, path);
      check_adaptive(*this, path);
      break;
  }
  check_tied_widths(*this, path, task);
  const bool attends = task == Task::kTranslation;
  check_stack({decoder, "decoder", attends}, *this, path);
}

}  // namespace seqconv::internal
