#include "runtime/model.h"

#include <algorithm>

#include "base/error.h"
#include "base/special_ids.h"
#include "pipeline/stop_scope.h"

namespace seqconv::internal::runtime {
namespace {

std::string side_name(Side side) {
  return side == Side::kEncoder ? "encoder." : "decoder.";
}

/// The name of the target words' matrix.
std::string target_words(const ModelOptions& options, Task task) {
  return task == Task::kTranslation && options.tie == Tying::kAll ? "encoder.embedding.weight"
                                                                  : "decoder.embedding.weight";
}

/// ids of whole sequences with their places.
std::span<const Embedding::Word> words_of(
    const Sequences& sequences, std::span<const int32_t> ids, Workspace::Frame& frame) {
  auto* const words = frame.take<Embedding::Word>(sequences.rows());
  size_t count = 0;
  for (int64_t i = 0; i < sequences.count(); ++i)
    for (int64_t t = 0; t < sequences.length(i); ++t, ++count)
      words[count] = {ids[count], t};
  return {words, count};
}

}  // namespace

Stack::Stack(const ModelOptions& options, Task task, Side side, const Weights& weights) {
  const bool decodes = side == Side::kDecoder;
  const StackOptions& stack = decodes ? options.decoder : options.encoder;
  const std::string name = side_name(side);
  for (int64_t i = 0; i < stack.layers; ++i)
    layers_.emplace_back(
        layer_options(options, task, side, i), weights, concat(name, "layer", i, "."));
  if (task == Task::kTranslation && options.norm_of(stack) == NormPlacement::kPre)
    final_norm_.emplace(weights, name + "final_norm");
}

void Stack::finish(int64_t rows, float* x) const {
  if (final_norm_)
    final_norm_->run(rows, x, x);
}

SourceView Sources::view(size_t layer, std::span<const int32_t> sentence_of_row) const {
  return {&sequences, &memories[layer], sentence_of_row};
}

Decoder::Decoder(
    const ModelOptions& options,
    Task task,
    const VocabularySizes& vocabulary,
    const Weights& weights)
    : dim_(options.dim),
      vocabulary_(vocabulary.target),
      embedding_(
          options, weights, {Side::kDecoder, vocabulary.target, target_words(options, task)}),
      stack_(options, task, Side::kDecoder, weights),
      output_(make_output(
          options,
          weights,
          vocabulary.target,
          options.tie == Tying::kNone ? "" : target_words(options, task))) {}

Sources Decoder::look_at(
    Sequences sequences, const float* states, Workspace::Frame& kept, Workspace& space) const {
  Sources sources{std::move(sequences), {}};
  for (const Layer& layer : stack_.layers())
    sources.memories.push_back(
        layer.cross_attention().memory(sources.sequences, states, kept, space));
  return sources;
}

PastSteps Decoder::start(Workspace::Frame& kept) const {
  int64_t reach = 0;
  for (const Layer& layer : stack_.layers())
    reach = std::max(reach, layer.reach());
  PastSteps past{Ancestry(reach, kept), {}};
  for (const Layer& layer : stack_.layers())
    past.layers.push_back(layer.start(kept));
  return past;
}

void Decoder::step(
    std::span<const int32_t> parents,
    std::span<const int32_t> ids,
    const Sources* sources,
    std::span<const int32_t> sentence_of_row,
    PastSteps& past,
    float* hidden,
    Workspace& space) const {
  const size_t rows = parents.size();
  past.ancestry.advance(parents, static_cast<int64_t>(ids.size() / rows));
  Workspace::Frame frame(space);
  auto* const words = frame.take<Embedding::Word>(static_cast<int64_t>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i)
    words[i] = {ids[i], past.ancestry.first() + static_cast<int64_t>(i / rows)};
  embedding_.run({words, ids.size()}, hidden, space);
  const std::vector<Layer>& layers = stack_.layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    SourceView view;
    if (sources != nullptr)
      view = sources->view(i, sentence_of_row);
    layers[i].step(past.ancestry, past.layers[i], &view, hidden, space);
  }
  stack_.finish(static_cast<int64_t>(ids.size()), hidden);
}

template <class Run>
void Decoder::read(
    const Sequences& sequences,
    std::span<const int32_t> ids,
    const Sources* sources,
    float* x,
    Workspace& space,
    const Run& run) const {
  {
    Workspace::Frame frame(space);
    embedding_.run(words_of(sequences, ids, frame), x, space);
  }
  const bool shared = sources != nullptr && sources->sequences.count() == 1;
  std::vector<int32_t> sentence_of_row;
  for (int64_t i = 0; i < sequences.count(); ++i)
    sentence_of_row.insert(
        sentence_of_row.end(),
        static_cast<size_t>(sequences.length(i)),
        shared ? 0 : static_cast<int32_t>(i));
  for (size_t i = 0; i < stack_.layers().size(); ++i) {
    SourceView view;
    if (sources != nullptr)
      view = sources->view(i, sentence_of_row);
    StopScope::check();
    run(i, view);
  }
  stack_.finish(sequences.rows(), x);
}

void Decoder::score(
    const Sequences& sequences,
    std::span<const int32_t> ids,
    std::span<const int32_t> words,
    const Sources* sources,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  float* const x = frame.take(sequences.rows() * dim_);
  const auto run = [&](size_t layer, const SourceView& view) {
    stack_.layers()[layer].forward(sequences, &view, x, space);
  };
  read(sequences, ids, sources, x, space, run);
  output_->score(words, x, out, space);
}

std::vector<SourceShares> Decoder::source_shares(
    const Sequences& sequences,
    std::span<const int32_t> ids,
    const Sources& sources,
    const AlignmentOptions& alignment,
    Workspace& space) const {
  Workspace::Frame frame(space);
  float* const x = frame.take(sequences.rows() * dim_);
  std::vector<SourceShares> found;
  const auto last = static_cast<size_t>(alignment.layer);
  const auto run = [&](size_t i, const SourceView& view) {
    if (i < last)
      stack_.layers()[i].forward(sequences, &view, x, space);
    else if (i == last)
      found = stack_.layers()[i].source_shares(sequences, view, alignment.heads, x, space);
  };
  read(sequences, ids, &sources, x, space, run);
  if (alignment.next_step)
    take_next_steps(found);
  return found;
}

std::vector<LayerProbe> Decoder::probe(
    std::span<const int32_t> ids, const Sources* sources, Workspace& space) const {
  Sequences sequences;
  sequences.add(static_cast<int64_t>(ids.size()));
  std::vector<LayerProbe> found(stack_.layers().size());
  Workspace::Frame frame(space);
  float* const x = frame.take(sequences.rows() * dim_);
  const auto run = [&](size_t layer, const SourceView& view) {
    stack_.layers()[layer].probe(sequences, &view, found[layer], x, space);
  };
  read(sequences, ids, sources, x, space, run);
  return found;
}

TranslationModel::TranslationModel(const ModelToRun& model, ComputeType compute)
    : TranslationModel(model, Weights(model, Task::kTranslation, compute)) {}

TranslationModel::TranslationModel(const ModelToRun& model, const Weights& weights)
    : dim_(model.options.dim),
      limits_{
          model.options.learned_positions(model.options.encoder),
          model.options.learned_positions(model.options.decoder)},
      alignment_(
          model.alignment.resolve(model.options.decoder.layers, model.options.decoder.heads)),
      type_(weights.type()),
      embedding_(
          model.options,
          weights,
          {Side::kEncoder, model.vocabulary.source, "encoder.embedding.weight"}),
      encoder_(model.options, Task::kTranslation, Side::kEncoder, weights),
      decoder_(model.options, Task::kTranslation, model.vocabulary, weights),
      weight_bytes_(weights.bytes()) {}

template <class Run>
Sources TranslationModel::read_by(
    const std::vector<std::vector<int32_t>>& sources,
    Workspace::Frame& kept,
    Workspace& space,
    const Run& run) const {
  Ids all;
  std::vector<int32_t> ended;
  for (const std::vector<int32_t>& source : sources) {
    ended = source;
    ended.push_back(kEndId);
    all.add(ended);
  }
  Workspace::Frame frame(space);
  const int64_t rows = all.sequences.rows();
  float* const x = frame.take(rows * dim_);
  embedding_.run(words_of(all.sequences, all.ids, frame), x, space);
  for (size_t i = 0; i < encoder_.layers().size(); ++i) {
    StopScope::check();
    run(i, all.sequences, x);
  }
  encoder_.finish(rows, x);
  return decoder_.look_at(std::move(all.sequences), x, kept, space);
}

Sources TranslationModel::read(
    const std::vector<std::vector<int32_t>>& sources,
    Workspace::Frame& kept,
    Workspace& space) const {
  const auto run = [&](size_t layer, const Sequences& sequences, float* x) {
    encoder_.layers()[layer].forward(sequences, nullptr, x, space);
  };
  return read_by(sources, kept, space, run);
}

Sources TranslationModel::probe(
    const std::vector<int32_t>& source,
    std::vector<LayerProbe>& found,
    Workspace::Frame& kept,
    Workspace& space) const {
  found.resize(encoder_.layers().size());
  const auto run = [&](size_t layer, const Sequences& sequences, float* x) {
    encoder_.layers()[layer].probe(sequences, nullptr, found[layer], x, space);
  };
  return read_by({source}, kept, space, run);
}

}  // namespace seqconv::internal::runtime
