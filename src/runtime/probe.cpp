#include "runtime/probe.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/special_ids.h"
#include "runtime/model.h"

namespace seqconv::internal {
namespace {

void add_options(
    const ModelOptions& options, Task task, Side side, std::vector<LayerProbe>& found) {
  for (size_t i = 0; i < found.size(); ++i)
    found[i].options = layer_options(options, task, side, static_cast<int64_t>(i));
}

}  // namespace

TranslationProber::TranslationProber(const ModelToRun& model)
    : options_(model.options),
      model_(std::make_unique<runtime::TranslationModel>(model, ComputeType::kModel)) {}

TranslationProber::~TranslationProber() = default;

int64_t TranslationProber::weight_bytes() const {
  return model_->weight_bytes();
}

ModelProbe TranslationProber::probe(
    std::vector<int32_t> source, std::span<const int32_t> target) const {
  if (const int64_t most = model_->limits().source; most > 0)
    source.resize(std::min(source.size(), static_cast<size_t>(most) - 1));
  runtime::Workspace source_space, space;
  runtime::Workspace::Frame kept(source_space);
  ModelProbe found;
  found.source_tokens = source.size();
  const runtime::Sources read = model_->probe(source, found.encoder, kept, space);
  std::vector<int32_t> ids = {kEndId};
  ids.insert(ids.end(), target.begin(), target.end());
  found.decoder = model_->decoder().probe(ids, &read, space);
  add_options(options_, Task::kTranslation, Side::kEncoder, found.encoder);
  add_options(options_, Task::kTranslation, Side::kDecoder, found.decoder);
  return found;
}

ModelProbe probe_translation(
    const ModelToRun& model, std::vector<int32_t> source, std::span<const int32_t> target) {
  return TranslationProber(model).probe(std::move(source), target);
}

ModelProbe probe_language(const ModelToRun& model, std::span<const int32_t> ids) {
  SEQCONV_CHECK(!ids.empty(), "a language model must be given a token");
  const runtime::Weights weights(model, Task::kLanguageModel, ComputeType::kModel);
  const runtime::Decoder opened(model.options, Task::kLanguageModel, model.vocabulary, weights);
  runtime::Workspace space;
  ModelProbe found;
  found.decoder = opened.probe(ids, nullptr, space);
  add_options(model.options, Task::kLanguageModel, Side::kDecoder, found.decoder);
  return found;
}

}  // namespace seqconv::internal
