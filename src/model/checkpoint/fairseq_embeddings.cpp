#include <algorithm>
#include <cmath>

#include "base/special_ids.h"
#include "model/checkpoint/clues.h"
#include "model/checkpoint/tensor_match.h"

namespace seqconv::internal {
namespace {

using Numbers = Clues::Numbers;

constexpr const char* kDecoderTable = "decoder.embed_tokens.weight";
constexpr const char* kEncoderTable = "encoder.embed_tokens.weight";
const std::string kBands = "decoder.embed_tokens.embeddings.";
const std::string kSoftmax = "decoder.adaptive_softmax.";

bool same(const Clues& clues, const std::string& a, const std::string& b) {
  return same_bits(clues.checkpoint().read(a), clues.checkpoint().read(b));
}

/// Error when an argument says that two matrices are one, but they differ.
void check_tied_argument(
    const Clues& clues, const char* argument, const std::string& a, const std::string& b) {
  SEQCONV_CHECK(
      !clues.boolean(argument).value_or(false),
      clues.where(),
      ": the stored argument ",
      argument,
      " says that '",
      a,
      "' and '",
      b,
      "' are one, but they differ");
}

void read_tying(Clues& clues, Task task, ModelOptions& options) {
  std::string output;
  for (const char* name : {"decoder.embed_out", "decoder.output_projection.weight"})
    if (clues.has(name))
      output = name;
  const bool tied = output.empty() || same(clues, output, kDecoderTable);
  if (!tied)
    check_tied_argument(clues, "share_decoder_input_output_embed", output, kDecoderTable);
  options.tie = tied ? Tying::kDecoder : Tying::kNone;
  if (task == Task::kTranslation) {
    const bool joined = same(clues, kEncoderTable, kDecoderTable);
    if (!joined || !tied)
      check_tied_argument(
          clues, "share_all_embeddings", joined ? output : kEncoderTable, kDecoderTable);
    if (tied && joined)
      options.tie = Tying::kAll;
  }
  clues.note(
      "model.tie",
      enum_name(options.tie),
      output.empty() ? "content of the embeddings; no output matrix"
                     : "content of the embeddings and " + output);
}

/// What leads to or from a width other than the model's.
struct Projection {
  const char* key;       ///< ours, of that width
  const char* tensor;    ///< of fairseq
  size_t axis;           ///< of the tensor, that width
  const char* argument;  ///< of fairseq; null: its models ignore it
};

/// Its width, 0 where there is none.
int64_t read_projection(Clues& clues, const Projection& projection, int64_t dim) {
  const auto given =
      projection.argument == nullptr ? std::nullopt : clues.integer(projection.argument);
  if (clues.has(projection.tensor))
    return clues.decide<int64_t>(
        projection.key,
        clues.shape(projection.tensor, 2)[projection.axis],
        projection.tensor,
        given,
        projection.argument == nullptr ? "" : projection.argument,
        {});
  SEQCONV_CHECK(
      given.value_or(dim) == dim,
      clues.where(),
      ": the stored argument ",
      projection.argument,
      " = ",
      given.value_or(dim),
      " is not the width of the model, ",
      dim,
      ", but there is no ",
      projection.tensor);
  return 0;
}

/// In fairseq, decoder_input_dim is read by language models alone, for one
/// table or the first band, and tied adaptive weights have no map before them.
void read_projections(Clues& clues, Task task, ModelOptions& options) {
  const bool bands = !options.adaptive.input_cutoffs.empty();
  const bool tied_bands = bands && options.tie != Tying::kNone;
  options.input_dim = read_projection(
      clues,
      {"model.input_dim",
       "decoder.project_in_dim.weight",
       1,
       task == Task::kTranslation || bands ? nullptr : "decoder_input_dim"},
      options.dim);
  options.output_dim = read_projection(
      clues,
      {"model.output_dim",
       "decoder.project_out_dim.weight",
       0,
       tied_bands ? nullptr : "decoder_output_dim"},
      options.dim);
}

/// Rows of bands as ids at which they end, but for the vocabulary's own end.
Numbers cutoffs_of(const Numbers& rows) {
  Numbers ends;
  int64_t end = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i)
    ends.push_back(end += rows[i]);
  return ends;
}

/// True when bands of these widths have this factor; widths are rounded down.
bool divides(const Numbers& widths, double factor) {
  const auto width = static_cast<double>(widths[0]);
  for (size_t i = 1; i < widths.size(); ++i) {
    const double divisor = std::pow(factor, static_cast<double>(i));
    if (std::floor(width / divisor) != static_cast<double>(widths[i]))
      return false;
  }
  return true;
}

/// The divisor of the bands' widths, if no argument says it. Widths that were
/// rounded down leave several: a whole number, or else the largest.
double factor_of(const Clues& clues, const std::string& argument, const Numbers& widths) {
  if (const auto factor = clues.real(argument))
    return *factor;
  if (widths.size() < 2 || std::ranges::min(widths) < 1)
    return 4;
  double largest = static_cast<double>(widths[0]);
  for (size_t i = 1; i < widths.size(); ++i)
    largest = std::min(
        largest,
        std::pow(
            static_cast<double>(widths[0]) / static_cast<double>(widths[i]),
            1.0 / static_cast<double>(i)));
  const double whole = std::floor(largest + 1e-9);
  if (whole >= 1 && divides(widths, whole))
    return whole;
  return divides(widths, largest) ? largest : largest * (1 - 1e-12);
}

void read_bands(Clues& clues, ModelOptions& options) {
  Numbers rows, widths;
  for (int64_t band = 0; clues.has(concat(kBands, band, ".0.weight")); ++band) {
    const Numbers& shape = clues.shape(concat(kBands, band, ".0.weight"), 2);
    rows.push_back(shape[0]);
    widths.push_back(shape[1]);
  }
  AdaptiveOptions& adaptive = options.adaptive;
  adaptive.input_cutoffs = cutoffs_of(rows);
  adaptive.input_dim = widths[0] == options.dim ? 0 : widths[0];
  adaptive.input_factor = factor_of(clues, "adaptive_input_factor", widths);
  clues.note("model.adaptive.input_cutoffs", adaptive.input_cutoffs, "shapes of " + kBands + "*");
  clues.note(
      "model.adaptive.input_factor",
      adaptive.input_factor,
      clues.real("adaptive_input_factor") ? "stored argument adaptive_input_factor"
                                          : "shapes of " + kBands + "*");
  if (rows.size() == 1)
    fail(clues.where(), ": an adaptive input must have two bands or more, but has one");
}

/// Tail projections that are the input's lie as those do, [C, width].
bool projections_tied(const Clues& clues, const ModelOptions& options) {
  const std::string name = kSoftmax + "tail.0.0.weight";
  const Numbers& shape = clues.shape(name, 2);
  const std::string input = kBands + "1.1.weight";
  if (shape[0] != shape[1])
    return shape[0] == options.dim;
  return clues.has(input) && same(clues, name, input);
}

void read_adaptive_softmax(Clues& clues, ModelOptions& options) {
  AdaptiveOptions& adaptive = options.adaptive;
  const bool tied = clues.has(kSoftmax + "head.class_proj.weight");
  Numbers tail_rows;
  Numbers widths = {0};
  for (int64_t i = 0; clues.has(concat(kSoftmax, "tail.", i, ".2.weight")); ++i) {
    const Numbers& shape = clues.shape(concat(kSoftmax, "tail.", i, ".2.weight"), 2);
    tail_rows.push_back(shape[0]);
    widths.push_back(shape[1]);
  }
  SEQCONV_CHECK(
      !tail_rows.empty(),
      clues.where(),
      ": an adaptive softmax (adaptive_softmax_cutoff) must have a tail, but there is no ",
      kSoftmax,
      "tail.0.2.weight");
  const auto tails = static_cast<int64_t>(tail_rows.size());
  std::string head = kSoftmax + "head.weight";
  if (tied)
    head = kSoftmax +
        (clues.has(kSoftmax + "head.word_proj.weight") ? "head.word_proj.weight"
                                                       : "head.word_proj.1.weight");
  Numbers rows = {clues.shape(head, 2)[0] - (tied ? 0 : tails)};
  rows.insert(rows.end(), tail_rows.begin(), tail_rows.end());
  adaptive.softmax_cutoffs = cutoffs_of(rows);
  widths[0] = clues.shape(head, 2)[1];
  adaptive.softmax_factor = factor_of(clues, "adaptive_softmax_factor", widths);
  adaptive.softmax_dropout = clues.real("adaptive_softmax_dropout").value_or(0);
  adaptive.tie_projections = tied && projections_tied(clues, options);
  options.tie = tied ? Tying::kDecoder : Tying::kNone;
  clues.note(
      "model.adaptive.softmax_cutoffs", adaptive.softmax_cutoffs, "shapes of " + kSoftmax + "*");
  clues.note("model.tie", enum_name(options.tie), "names of tensors");
  clues.note(
      "model.adaptive.tie_projections",
      adaptive.tie_projections,
      "shape of " + kSoftmax + "tail.0.0.weight");
}

/// How a checkpoint calls a side's positions, and where we say them.
struct PositionNames {
  std::string side;     ///< of fairseq
  const char* longest;  ///< argument of fairseq
  std::string keys;     ///< begin so
};

/// Positions of a side; `longest` is 0 where nothing tells.
struct FoundPositions {
  PositionKind kind = PositionKind::kSinusoidal;
  int64_t longest = 0;
};

/// What is left when there is no table: sines, of which older files hold a
/// buffer, or nothing, which only arguments and presets tell.
PositionKind kind_without_table(Clues& clues, const PositionNames& names, bool none) {
  const char* argument = "no_token_positional_embeddings";
  const std::string buffer = names.side + ".embed_positions._float_tensor";
  const bool buffered = clues.checkpoint().bookkeeping().contains(buffer);
  const bool silent = !clues.boolean(argument) && !buffered;
  SEQCONV_CHECK(
      !none || !buffered,
      clues.where(),
      ": the stored argument ",
      argument,
      " says that the model has no positions, but there is a tensor '",
      buffer,
      "'");
  const ModelOptions* preset = silent ? clues.preset() : nullptr;
  if (preset != nullptr)
    none = preset->positions_of(names.side == "encoder" ? preset->encoder : preset->decoder) ==
        PositionKind::kNone;
  const PositionKind kind = none ? PositionKind::kNone : PositionKind::kSinusoidal;
  clues.note(
      names.keys + "positions",
      enum_name(kind),
      !none                   ? "no embed_positions.weight"
          : preset != nullptr ? std::string("preset")
                              : concat("stored argument ", argument));
  return kind;
}

/// Learned positions are a table; it has rows for <pad> and the id before.
FoundPositions read_side_positions(Clues& clues, const PositionNames& names) {
  const std::string table = names.side + ".embed_positions.weight";
  const bool learned = clues.has(table);
  const bool none = clues.boolean("no_token_positional_embeddings").value_or(false);
  const std::string argument = names.side + "_learned_pos";
  SEQCONV_CHECK(
      learned ? !none && clues.boolean(argument).value_or(true)
              : none || !clues.boolean(argument).value_or(false),
      clues.where(),
      ": the stored argument ",
      none ? "no_token_positional_embeddings" : argument,
      " contradicts the tensors, where '",
      table,
      "' is ",
      learned ? "there" : "not there");
  const auto given = clues.integer(names.longest);
  if (!learned)
    return {
        kind_without_table(clues, names, none),
        given && *given >= 2 && *given <= (1 << 20) ? *given : 0};
  clues.note(names.keys + "positions", "learned", "there is " + table);
  return {
      PositionKind::kLearned,
      clues.decide<int64_t>(
          names.keys + "max_positions",
          clues.shape(table, 2)[0] - kFirstPosition,
          table,
          given,
          names.longest,
          {})};
}

/// The model has the decoder's, and where the encoder has others its own.
/// Lengths of positions that are not learned say only what training keeps.
void read_positions(Clues& clues, Task task, ModelOptions& options) {
  const auto or_default = [](int64_t longest) {
    return longest > 0 ? longest : ModelOptions{}.max_positions;
  };
  const FoundPositions decoder =
      read_side_positions(clues, {"decoder", "max_target_positions", "model."});
  options.positions = decoder.kind;
  options.max_positions = or_default(decoder.longest);
  if (task == Task::kLanguageModel)
    return;
  const FoundPositions encoder =
      read_side_positions(clues, {"encoder", "max_source_positions", "model.encoder."});
  if (encoder.kind != decoder.kind)
    options.encoder.positions = as_side_positions(encoder.kind);
  if (encoder.kind != PositionKind::kLearned && decoder.kind != PositionKind::kLearned)
    options.max_positions = or_default(std::max(encoder.longest, decoder.longest));
  else if (or_default(encoder.longest) != options.max_positions)
    options.encoder.max_positions = or_default(encoder.longest);
}

}  // namespace

void deduce_embeddings(Clues& clues, Task task, ModelOptions& options) {
  SEQCONV_CHECK(
      !clues.has_prefix("decoder.embed_tokens.char_embeddings"),
      clues.where(),
      ": embeddings of characters (character_embeddings) are not supported");
  if (clues.has(kBands + "0.0.weight"))
    read_bands(clues, options);
  if (clues.has_prefix(kSoftmax))
    read_adaptive_softmax(clues, options);
  else if (options.adaptive.input_cutoffs.empty())
    read_tying(clues, task, options);
  else
    options.tie = Tying::kNone;
  read_projections(clues, task, options);
  read_positions(clues, task, options);
}

}  // namespace seqconv::internal
