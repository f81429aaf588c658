#include "base/options.h"
#include "libtorch/backend/model_folder.h"
#include "text/symbol_count.h"
#include "train/binarised_data.h"
#include "train/given_text.h"
#include "train/settings.h"
#include "train/task.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

fs::path store_of(const fs::path& stem) {
  return stem.string() + ".tokens";
}

class LanguageModelTask : public TrainingTask {
 public:
  LanguageModelTask(const TrainConfig& config, at::Device device)
      : config_(config), device_(device) {
    loaded_.options = config.model;
    loaded_.stream = config.data.stream;
  }

  void create(const TrainRequest& request) override {
    if (request.init_from.empty())
      learn();
    else
      take_from(request);
  }

  void open(const RootedPath& folder) override {
    loaded_ = load_language_model_config(folder, device_);
  }

  void write_config(const fs::path& folder) override {
    loaded_.folder = folder;
    write_description(loaded_);
  }

  CorpusRecipes recipes() const override {
    CorpusRecipes recipes{recipe(config_.data.training_text()), std::nullopt};
    if (const auto text = config_.data.validation_text(); !text.empty())
      recipes.valid = recipe(text);
    return recipes;
  }

  std::shared_ptr<SequenceModel> model() const override { return loaded_.model.ptr(); }
  const TextOptions& text_options() const override { return loaded_.text.options; }
  Json describe() const override { return {{"vocabulary", loaded_.model->vocabulary()}}; }
  std::optional<DecodingOptions> decoding_for(const SampleSource&, bool /*fits*/) override {
    return std::nullopt;
  }
  int64_t target_vocabulary() const override { return loaded_.model->vocabulary(); }
  std::vector<TextScore> validation_scores(
      const std::vector<MetricKind>& /*metrics*/,
      Communicator& /*processes*/,
      const ValidationStop& /*between*/) override {
    fail("a language model translates nothing that could be judged");
  }

 private:
  void learn() {
    // Held-out lines too: a model that never saw <unk> could not read a symbol that only they have.
    const std::vector<std::string>& names = config_.data.train;
    const std::vector<TextSource> files(names.begin(), names.end());
    LanguageText& text = loaded_.text;
    text = LanguageText::create(config_.text, text_files(files));
    const int64_t vocabulary = text.text->vocabulary().size();
    text.knows_unknown = text.knows_unknown || binarised_unknown(files, vocabulary);
    if (text.samples.empty())
      text.samples = binarised_samples(files, *text.text);
    loaded_.model = LanguageModel(
        loaded_.options, vocabulary, static_cast<uint64_t>(config_.training.seed), device_);
  }

  void take_from(const TrainRequest& request) {
    const LoadedLanguageModel given = load_language_model({request.init_from, request.links});
    check_same_architecture(config_.model, given.options, request.init_from);
    check_given_text(
        request,
        given.text.options,
        {{"text.dictionary", config_.text.dictionary, *given.text.text}});
    loaded_.text = given.text;
    loaded_.model =
        LanguageModel(loaded_.options, given.model->vocabulary(), std::nullopt, device_);
    copy_parameters(*given.model, *loaded_.model);
  }

  /// Symbols that the model can never learn are an error, not a number.
  CorpusSide side_of(const std::vector<TextSource>& files) const {
    const auto check = [text = loaded_.text](
                           std::string_view line, const std::vector<int32_t>& ids) {
      stop_preparing_if_asked();
      check_known(text, line, ids, "");
    };
    return {
        .files = files,
        .encode =
            [text = loaded_.text.text, check](std::string_view line) {
              std::vector<int32_t> ids = text->encode(line);
              check(line, ids);
              return ids;
            },
        .vocabulary = loaded_.text.text->vocabulary().size(),
        .check = [check](const std::vector<int32_t>& ids) { check("", ids); }};
  }

  /// Text of another vocabulary, which check_known lets pass where the model
  /// has learned <unk>.
  std::vector<std::string> warnings_of(const StreamReport& report) const {
    const bool blocks = loaded_.stream.samples == SampleKind::kBlocks;
    const int64_t ends = report.lines - report.too_long - (blocks ? 0 : report.blank);
    const SymbolCount count{report.tokens - ends, report.unknown};
    return count.is_mostly_unknown() ? std::vector{count.warning()} : std::vector<std::string>{};
  }

  CorpusRecipe recipe(const std::vector<TextSource>& files) const {
    return {
        [this, files](const fs::path& stem) {
          return write_options(write_stream_corpus(
              side_of(files),
              loaded_.stream,
              config_.model.max_positions_of(config_.model.decoder),
              store_of(stem)));
        },
        [this](const fs::path& stem, const Json& table) -> PreparedCorpus {
          StreamReport report;
          read_options(table, "report", report);
          return {
              open_stream_corpus(store_of(stem), loaded_.stream, loaded_.model->vocabulary()),
              report.summary(),
              warnings_of(report)};
        }};
  }

  TrainConfig config_;
  at::Device device_;
  LoadedLanguageModel loaded_;
};

}  // namespace

std::shared_ptr<TrainingTask> make_language_model_task(
    const TrainConfig& config, at::Device device) {
  return std::make_shared<LanguageModelTask>(config, device);
}

}  // namespace seqconv::internal
