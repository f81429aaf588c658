#include "seqconv/checkpoint/import.h"

#include <deque>

#include "seqconv/base/elements.h"
#include "seqconv/base/error.h"
#include "seqconv/base/files.h"
#include "seqconv/base/log.h"
#include "seqconv/checkpoint/fairseq_architecture.h"
#include "seqconv/checkpoint/model_description.h"
#include "tensor_match.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kElementsAtATime = 1 << 16;

/// A checkpoint and where it has our parameters.
struct Source {
  FairseqCheckpoint checkpoint;
  std::vector<MatchedParameter> parameters;
};
using Sources = std::deque<Source>;

void report(const FairseqCheckpoint& checkpoint) {
  for (const std::string& name : checkpoint.ignored_classes())
    log_info(
        checkpoint.where(),
        ": ignored objects of the class ",
        name,
        " (nothing of the kind is ever executed)");
  if (checkpoint.has_other_ema())
    log_info(
        checkpoint.where(),
        ": holds a moving average of the weights too, which --ema would take");
  if (checkpoint.arguments().empty())
    log_info(checkpoint.where(), ": holds no arguments of its training");
}

Sources open_checkpoints(const ImportRequest& request) {
  SEQCONV_CHECK(
      !request.checkpoints.empty(),
      "an import needs a checkpoint, but got none");
  Sources sources;
  for (const std::string& file : request.checkpoints) {
    sources.push_back({FairseqCheckpoint(file, request.weights), {}});
    report(sources.back().checkpoint);
  }
  return sources;
}

/// The name of an embedding whose rows are the symbols of a side, and their
/// number.
std::pair<std::string, int64_t> embedding_rows(
    const FairseqCheckpoint& checkpoint,
    const std::string& side) {
  const std::string tokens = side + ".embed_tokens.";
  int64_t rows = 0;
  for (int64_t band = 0;; ++band) {
    const auto found = checkpoint.tensors().find(
        concat(tokens, "embeddings.", band, ".0.weight"));
    if (found == checkpoint.tensors().end())
      break;
    rows += found->second.shape.at(0);
  }
  if (rows > 0)
    return {tokens + "embeddings", rows};
  return {
      tokens + "weight",
      checkpoint.tensors().at(tokens + "weight").shape.at(0)};
}

void check_vocabulary(
    const FairseqCheckpoint& checkpoint,
    const std::string& side,
    const std::string& dictionary,
    int64_t size) {
  const auto [name, rows] = embedding_rows(checkpoint, side);
  SEQCONV_CHECK(
      rows == size,
      dictionary,
      ": wrong dictionary for this checkpoint: it has ",
      size,
      " symbols (the four special ones counted), but '",
      name,
      "' of ",
      checkpoint.where(),
      " has ",
      rows,
      " rows");
}

/// Lines for the self-test of the model folder, made of the vocabulary's own
/// symbols: the most frequent ones, and some rarer.
std::vector<std::string> sample_lines(const TextPipeline& pipeline) {
  constexpr int32_t kFirst = 4;
  constexpr int32_t kSymbols = 12;
  const auto size = static_cast<int32_t>(pipeline.vocabulary().size());
  std::vector<std::string> lines;
  for (const int32_t begin : {kFirst, size / 2}) {
    std::vector<int32_t> ids;
    for (int32_t id = begin; id < size && id < begin + kSymbols; ++id)
      ids.push_back(id);
    lines.push_back(pipeline.decode(ids));
  }
  return lines;
}

void need_dictionary(const std::string& file, const char* flag, Task task) {
  if (file.empty())
    fail_usage(
        "the checkpoint holds a ",
        task == Task::kTranslation ? "translation" : "language",
        " model, which needs ",
        flag);
}

TranslationText read_text(
    TextOptions options,
    const FairseqCheckpoint& checkpoint) {
  if (!options.dictionary.empty())
    fail_usage(
        "--dictionary is for language models, but ",
        checkpoint.where(),
        " holds a translation model: give --source-dictionary and "
        "--target-dictionary");
  constexpr Task kTask = Task::kTranslation;
  need_dictionary(options.source_dictionary, "--source-dictionary", kTask);
  need_dictionary(options.target_dictionary, "--target-dictionary", kTask);
  options.joined = Vocabulary::load(options.source_dictionary).to_text() ==
      Vocabulary::load(options.target_dictionary).to_text();
  TranslationText text = TranslationText::create(options, {}, {});
  check_vocabulary(
      checkpoint,
      "encoder",
      options.source_dictionary,
      text.source->vocabulary().size());
  check_vocabulary(
      checkpoint,
      "decoder",
      options.target_dictionary,
      text.target->vocabulary().size());
  text.source_samples = sample_lines(*text.source);
  text.target_samples = sample_lines(*text.target);
  return text;
}

LanguageText read_language_text(
    const TextOptions& options,
    const FairseqCheckpoint& checkpoint) {
  if (!options.source_dictionary.empty() || !options.target_dictionary.empty())
    fail_usage(
        "--source-dictionary and --target-dictionary are for translation "
        "models, but ",
        checkpoint.where(),
        " holds a language model: give --dictionary");
  need_dictionary(options.dictionary, "--dictionary", Task::kLanguageModel);
  LanguageText text = LanguageText::create(options, {});
  check_vocabulary(
      checkpoint,
      "decoder",
      options.dictionary,
      text.text->vocabulary().size());
  text.knows_unknown = true;  // fairseq's models have one in every dictionary
  text.samples = sample_lines(*text.text);
  return text;
}

/// How the text of training was cut, where the arguments say it.
StreamOptions read_stream(const FairseqCheckpoint& checkpoint) {
  StreamOptions stream;
  const Json& arguments = checkpoint.arguments();
  const Json mode = arguments.value("sample_break_mode", Json());
  if (mode == "eos")
    stream.samples = SampleKind::kLines;
  else if (mode == "complete_doc")
    stream.samples = SampleKind::kDocumentBlocks;
  const Json tokens = arguments.value("tokens_per_sample", Json());
  if (tokens.is_number_integer() && tokens.get<int64_t>() > 0 &&
      tokens.get<int64_t>() <= (1 << 20))
    stream.block_tokens = tokens.get<int64_t>();
  log_info(
      "  stream.samples = ",
      enum_name(stream.samples),
      ", stream.block_tokens = ",
      stream.block_tokens,
      mode.is_null() ? " (defaults)"
                     : " (stored arguments sample_break_mode, "
                       "tokens_per_sample)");
  return stream;
}

void match(Sources& sources, const FairseqLayout& layout) {
  for (Source& source : sources)
    source.parameters = match_tensors(layout, source.checkpoint);
}

/// Checks the storages of a parameter's parts, which has not been done before.
void check_storages(
    const FairseqCheckpoint& checkpoint,
    const MatchedParameter& parameter) {
  for (const TheirRows& part : parameter.parts)
    checkpoint.read(part.name);
}

void warn_not_finite(
    const FairseqCheckpoint& checkpoint,
    const TheirRows& part,
    size_t count) {
  if (count > 0)
    log_warning(
        checkpoint.where(),
        ": '",
        part.name,
        "' holds ",
        count,
        " numbers that are NaN or infinite");
}

/// Every bit as it is.
void copy_parameter(const Source& source, size_t index, const ByteSink& sink) {
  const MatchedParameter& parameter = source.parameters[index];
  check_storages(source.checkpoint, parameter);
  for (const TheirRows& part : parameter.parts) {
    const StridedTensor tensor = rows_of(source.checkpoint, part);
    size_t not_finite = 0;
    tensor.visit([&](std::span<const std::byte> piece) {
      not_finite += count_not_finite(tensor.type, piece);
      sink(piece);
    });
    warn_not_finite(source.checkpoint, part, not_finite);
  }
  source.checkpoint.release();
}

/// Rows [begin, begin + rows) of part number `part` of a parameter, the mean
/// over the sources.
std::vector<float> mean_of_rows(
    const Sources& sources,
    size_t index,
    size_t part,
    int64_t begin,
    int64_t rows) {
  std::vector<double> sums;
  for (const Source& source : sources) {
    const TheirRows& theirs = source.parameters[index].parts[part];
    const StridedTensor tensor =
        rows_of(source.checkpoint, theirs).rows(begin, rows);
    sums.resize(static_cast<size_t>(tensor.count()));
    size_t at = 0;
    tensor.visit([&](std::span<const std::byte> piece) {
      const size_t count = piece.size() / element_size(tensor.type);
      add_elements(
          tensor.type,
          piece,
          std::span(sums).subspan(at, count),
          source.checkpoint.where());
      at += count;
    });
  }
  std::vector<float> mean(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    mean[i] = static_cast<float>(sums[i] / static_cast<double>(sources.size()));
  return mean;
}

void average_parameter(
    const Sources& sources,
    size_t index,
    const ByteSink& sink) {
  for (const Source& source : sources)
    check_storages(source.checkpoint, source.parameters[index]);
  const MatchedParameter& first = sources.front().parameters[index];
  for (size_t part = 0; part < first.parts.size(); ++part) {
    const StridedTensor tensor =
        rows_of(sources.front().checkpoint, first.parts[part]);
    const int64_t all = tensor.shape.at(0);
    const int64_t width =
        std::max<int64_t>(tensor.count() / std::max<int64_t>(all, 1), 1);
    const int64_t step = std::max<int64_t>(kElementsAtATime / width, 1);
    for (int64_t begin = 0; begin < all; begin += step) {
      const std::vector<float> mean = mean_of_rows(
          sources,
          index,
          part,
          begin,
          std::min(step, all - begin));
      sink(std::as_bytes(std::span<const float>(mean)));
    }
  }
  for (const Source& source : sources)
    source.checkpoint.release();
}

void write_parameters(const Sources& sources, const fs::path& file) {
  std::map<std::string, TensorSource> tensors;
  const Source& first = sources.front();
  const bool one = sources.size() == 1;
  for (size_t i = 0; i < first.parameters.size(); ++i) {
    const MatchedParameter& parameter = first.parameters[i];
    const ElementType type =
        first.checkpoint.tensors().at(parameter.parts[0].name).type;
    tensors[parameter.ours.name] = {
        one ? type : ElementType::kF32,
        parameter.ours.shape,
        [&sources, i, one](const ByteSink& sink) {
          if (one)
            copy_parameter(sources.front(), i, sink);
          else
            average_parameter(sources, i, sink);
        }};
  }
  stream_safetensors(
      file,
      tensors,
      {{"imported", std::to_string(sources.size())}});
}

/// What is written is checked first; config.json comes last.
template <class Description>
void write_model(
    Sources& sources,
    Task task,
    const Description& description,
    const fs::path& output) {
  match(
      sources,
      fairseq_layout(description.options, task, description.vocabulary()));
  create_folder(output);
  write_parameters(sources, output / "model.safetensors");
  write_description(description);
}

void check_output(const fs::path& output) {
  SEQCONV_CHECK(
      !fs::exists(output / "training"),
      "--output must not be the folder of a trained model, but '",
      output.string(),
      "' holds its training");
}

}  // namespace

void import_checkpoint(const ImportRequest& request) {
  const fs::path output = request.output;
  check_output(output);
  Sources sources = open_checkpoints(request);
  const FairseqCheckpoint& first = sources.front().checkpoint;
  const Task task = task_of(first);
  ModelOptions preset = ModelOptions::defaults(task);
  if (request.preset)
    request.preset(preset);
  const DeducedArchitecture found =
      deduce_architecture(first, request.preset ? &preset : nullptr);
  for (const std::string& decision : found.decisions)
    log_info("  ", decision);
  switch (task) {
    case Task::kTranslation:
      write_model(
          sources,
          task,
          TranslationDescription{
              .folder = output,
              .options = found.options,
              .text = read_text(request.text, first)},
          output);
      break;
    case Task::kLanguageModel:
      write_model(
          sources,
          task,
          LanguageDescription{
              .folder = output,
              .options = found.options,
              .text = read_language_text(request.text, first),
              .stream = read_stream(first)},
          output);
      break;
  }
  log_info(
      "imported ",
      sources.size() == 1
          ? first.where()
          : concat("the mean of ", sources.size(), " checkpoints"),
      " into ",
      output.string());
}

}  // namespace seqconv
