#include "model/checkpoint/import.h"

#include <deque>

#include "base/elements.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "model/checkpoint/fairseq_architecture.h"
#include "model/checkpoint/import_text.h"
#include "model/checkpoint/tensor_match.h"
#include "model/model_description.h"
#include "model/model_writing.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kElementsAtATime = 1 << 16;
constexpr int64_t kElementsToRelease = 1 << 21;  // of each checkpoint

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
  if (!checkpoint.wrapper().empty())
    log_info(
        checkpoint.where(),
        ": dropped '",
        checkpoint.wrapper(),
        "' in front of all names of tensors");
  if (checkpoint.has_other_ema())
    log_info(
        checkpoint.where(), ": holds a moving average of the weights too, which --ema would take");
  if (checkpoint.arguments().empty())
    log_info(checkpoint.where(), ": holds no arguments of its training");
}

/// Error when the parameters would be written over a checkpoint.
void check_not_a_source(const ImportRequest& request) {
  const fs::path parameters = fs::path(request.output) / "model.safetensors";
  std::error_code none;
  for (const std::string& file : request.checkpoints)
    SEQCONV_CHECK(
        !fs::equivalent(parameters, file, none),
        "--output must not hold the checkpoint to import, but '",
        parameters.string(),
        "' is '",
        file,
        "'");
}

Sources open_checkpoints(const ImportRequest& request) {
  SEQCONV_CHECK(!request.checkpoints.empty(), "an import needs a checkpoint, but got none");
  Sources sources;
  for (const std::string& file : request.checkpoints) {
    sources.push_back({FairseqCheckpoint(file, request.weights), {}});
    report(sources.back().checkpoint);
  }
  return sources;
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
  if (tokens.is_number_integer() && tokens.get<int64_t>() > 0 && tokens.get<int64_t>() <= (1 << 20))
    stream.block_tokens = tokens.get<int64_t>();
  log_info(
      "  stream.samples = ",
      enum_name(stream.samples),
      ", stream.block_tokens = ",
      stream.block_tokens,
      mode.is_null() ? " (defaults)" : " (stored arguments sample_break_mode, tokens_per_sample)");
  return stream;
}

void match(Sources& sources, const FairseqLayout& layout) {
  for (Source& source : sources) {
    source.parameters = match_tensors(layout, source.checkpoint);
    source.checkpoint.release();
  }
}

/// Checks the storages of a parameter's parts, which has not been done before.
void check_storages(const Source& source, size_t index) {
  for (const FairseqRows& part : source.parameters[index].parts)
    source.checkpoint.read(part.name);
}

void release(const Sources& sources) {
  for (const Source& source : sources)
    source.checkpoint.release();
}

void require_finite_part(
    const FairseqCheckpoint& checkpoint, const FairseqRows& part, size_t not_finite) {
  require_finite(not_finite, concat(checkpoint.where(), ": '", part.name, "'"));
}

/// Every bit as it is.
void copy_parameter(const Source& source, size_t index, const ByteSink& sink) {
  check_storages(source, index);
  for (const FairseqRows& part : source.parameters[index].parts) {
    const StridedTensor tensor = rows_of(source.checkpoint, part);
    size_t not_finite = 0;
    tensor.visit([&](std::span<const std::byte> piece) {
      not_finite += count_not_finite(tensor.type, piece);
      sink(piece);
    });
    require_finite_part(source.checkpoint, part, not_finite);
  }
  source.checkpoint.release();
}

/// Rows [begin, begin + rows) of part number `part` of a parameter, the mean
/// over the sources.
std::vector<float> mean_of_rows(
    const Sources& sources, size_t index, size_t part, int64_t begin, int64_t rows) {
  std::vector<double> sums;
  for (const Source& source : sources) {
    const FairseqRows& theirs = source.parameters[index].parts[part];
    const StridedTensor tensor = rows_of(source.checkpoint, theirs).rows(begin, rows);
    sums.resize(static_cast<size_t>(tensor.count()));
    size_t at = 0;
    size_t not_finite = 0;
    tensor.visit([&](std::span<const std::byte> piece) {
      const size_t count = piece.size() / element_size(tensor.type);
      not_finite += count_not_finite(tensor.type, piece);
      add_elements(
          tensor.type, piece, std::span(sums).subspan(at, count), source.checkpoint.where());
      at += count;
    });
    require_finite_part(source.checkpoint, theirs, not_finite);
  }
  return mean_of(sums, static_cast<double>(sources.size()));
}

void average_parameter(const Sources& sources, size_t index, const ByteSink& sink) {
  for (const Source& source : sources) {
    check_storages(source, index);
    source.checkpoint.release();
  }
  const MatchedParameter& first = sources.front().parameters[index];
  int64_t since_release = 0;
  for (size_t part = 0; part < first.parts.size(); ++part) {
    const StridedTensor tensor = rows_of(sources.front().checkpoint, first.parts[part]);
    const int64_t all = tensor.shape.at(0);
    const int64_t width = tensor.count() / std::max<int64_t>(all, 1);
    const int64_t step = std::max<int64_t>(kElementsAtATime / std::max<int64_t>(width, 1), 1);
    for (int64_t begin = 0; begin < all; begin += step) {
      const int64_t rows = std::min(step, all - begin);
      const std::vector<float> mean = mean_of_rows(sources, index, part, begin, rows);
      sink(std::as_bytes(std::span<const float>(mean)));
      since_release += rows * width;
      if (since_release > kElementsToRelease) {
        release(sources);
        since_release = 0;
      }
    }
  }
  release(sources);
}

void write_parameters(const Sources& sources, const fs::path& file) {
  std::map<std::string, TensorSource> tensors;
  const Source& first = sources.front();
  const bool one = sources.size() == 1;
  for (size_t i = 0; i < first.parameters.size(); ++i) {
    const MatchedParameter& parameter = first.parameters[i];
    const ElementType type = first.checkpoint.tensors().at(parameter.parts[0].name).type;
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
  stream_safetensors(file, tensors, {{"imported", std::to_string(sources.size())}});
}

/// What is written is checked first; config.json comes last.
template <class Description>
void write_model(
    Sources& sources, Task task, const Description& description, const fs::path& output) {
  match(sources, fairseq_layout(description.options, task, description.vocabulary()));
  write_model_folder(
      output,
      [&](const fs::path& file) { write_parameters(sources, file); },
      [&] { write_description(description); });
}

}  // namespace

void import_checkpoint(const ImportRequest& request) {
  const fs::path output = request.output;
  check_output_folder(output);
  check_not_a_source(request);
  check_own_folder(output);
  Sources sources = open_checkpoints(request);
  const FairseqCheckpoint& first = sources.front().checkpoint;
  const Task task = task_of(first);
  ModelOptions preset = ModelOptions::defaults(task);
  if (request.preset)
    request.preset(preset);
  const DeducedArchitecture found = deduce_architecture(first, request.preset ? &preset : nullptr);
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
              .text = import_text(request.text, first, found.options)},
          output);
      break;
    case Task::kLanguageModel:
      write_model(
          sources,
          task,
          LanguageDescription{
              .folder = output,
              .options = found.options,
              .text = import_language_text(request.text, first),
              .stream = read_stream(first)},
          output);
      break;
  }
  log_info(
      "imported ",
      sources.size() == 1 ? first.where() : concat("the mean of ", sources.size(), " checkpoints"),
      " into ",
      output.string());
}

}  // namespace seqconv::internal
