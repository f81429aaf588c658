#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/special_ids.h"
#include "runtime/runtime_backends.h"
#include "runtime/step_decoder.h"

namespace seqconv::internal {
namespace {

using Models = std::vector<std::shared_ptr<const runtime::TranslationModel>>;

/// The ids that a decoder reads while it makes these targets: </s> first.
runtime::Ids ids_read(const std::vector<std::vector<int32_t>>& targets) {
  runtime::Ids read;
  std::vector<int32_t> ids;
  for (const std::vector<int32_t>& target : targets) {
    ids.assign(1, kEndId);
    ids.insert(ids.end(), target.begin(), target.end());
    read.add(ids);
  }
  return read;
}

class RuntimeTranslation : public TranslationBackend {
 public:
  RuntimeTranslation(Models models, int64_t logits_bytes)
      : models_(std::move(models)),
        memory_{std::make_shared<runtime::WorkspacePool>(), logits_bytes} {
    for (const auto& model : models_)
      limits_ = limits_.within(model->limits());
  }

  std::unique_ptr<StepDecoder> start(
      const std::vector<std::vector<int32_t>>& sources) const override {
    SEQCONV_CHECK(!sources.empty(), "a batch must have a source, but got none");
    return runtime::make_step_decoder(models_, sources, memory_);
  }

  bool limits_words() const override {
    return std::ranges::all_of(
        models_, [](const auto& model) { return model->decoder().output().has_logits(); });
  }
  std::unique_ptr<StepDecoder> start_within(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& words) const override {
    SEQCONV_CHECK(
        !sources.empty() && sources.size() == words.size(),
        "every source, one at least, must have a list of words, but there are ",
        sources.size(),
        " and ",
        words.size());
    SEQCONV_CHECK(
        limits_words(), "an adaptive softmax takes no lists of words: its bands are its own");
    return runtime::make_step_decoder(
        models_,
        sources,
        memory_,
        std::make_unique<const runtime::WordLists>(words, models_[0]->decoder().vocabulary()));
  }

  std::vector<double> score(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& targets) const override;
  std::vector<SourceShares> source_shares(
      const std::vector<int32_t>& source,
      const std::vector<std::vector<int32_t>>& targets) const override;

  PositionLimits limits() const override { return limits_; }

  std::string name() const override {
    std::set<std::string_view> types;
    for (const auto& model : models_)
      types.insert(enum_name(model->weight_type()));
    std::string name = "runtime";
    for (const std::string_view type : types)
      name += concat(", ", type);
    return name;
  }
  int64_t weight_bytes() const override {
    int64_t bytes = 0;
    for (const auto& model : models_)
      bytes += model->weight_bytes();
    return bytes;
  }

 private:
  Models models_;
  PositionLimits limits_;
  runtime::DecoderMemory memory_;
};

std::vector<double> RuntimeTranslation::score(
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets) const {
  SEQCONV_CHECK(models_.size() == 1, "one model scores at a time, but there are ", models_.size());
  SEQCONV_CHECK(
      sources.size() == targets.size(),
      "every source must have a target, but there are ",
      sources.size(),
      " and ",
      targets.size());
  if (sources.empty())
    return {};
  const runtime::WorkspacePool::Loan spaces(memory_.pool);
  runtime::Workspace::Frame kept(spaces->kept);
  const runtime::Sources read = models_[0]->read(sources, kept, spaces->scratch);
  const runtime::Ids given = ids_read(targets);
  runtime::Ids wanted;
  for (std::vector<int32_t> ids : targets) {
    ids.push_back(kEndId);
    wanted.add(ids);
  }
  std::vector<float> scores(wanted.ids.size());
  models_[0]->decoder().score(
      given.sequences, given.ids, wanted.ids, &read, scores.data(), spaces->scratch);
  std::vector<double> sums(targets.size(), 0.0);
  for (size_t i = 0; i < targets.size(); ++i)
    for (int64_t t = given.sequences.begin[i]; t < given.sequences.begin[i + 1]; ++t)
      sums[i] += scores[static_cast<size_t>(t)];
  return sums;
}

std::vector<SourceShares> RuntimeTranslation::source_shares(
    const std::vector<int32_t>& source, const std::vector<std::vector<int32_t>>& targets) const {
  if (targets.empty())
    return {};
  const runtime::WorkspacePool::Loan spaces(memory_.pool);
  const runtime::Ids given = ids_read(targets);
  std::vector<std::vector<SourceShares>> found;
  for (const auto& model : models_) {
    runtime::Workspace::Frame kept(spaces->kept);
    const runtime::Sources read = model->read({source}, kept, spaces->scratch);
    found.push_back(model->decoder().source_shares(
        given.sequences, given.ids, read, model->alignment(), spaces->scratch));
  }
  return mean_shares(std::move(found));
}

}  // namespace

std::shared_ptr<const TranslationBackend> RuntimeBackends::translation(
    const std::vector<ModelToRun>& models) const {
  SEQCONV_CHECK(!models.empty(), "decoding needs at least one model");
  Models opened;
  for (const ModelToRun& model : models) {
    SEQCONV_CHECK(
        model.vocabulary.target == models[0].vocabulary.target,
        "models of an ensemble must have the same target vocabulary, but got ",
        models[0].vocabulary.target,
        " and ",
        model.vocabulary.target,
        " symbols");
    opened.push_back(std::make_shared<const runtime::TranslationModel>(model, compute_));
  }
  return std::make_shared<RuntimeTranslation>(std::move(opened), logits_bytes_);
}

}  // namespace seqconv::internal
