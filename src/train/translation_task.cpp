#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/options.h"
#include "libtorch/backend/model_folder.h"
#include "text/corpus/aligned_samples.h"
#include "text/corpus/pair_corpus.h"
#include "text/symbol_count.h"
#include "train/alignment_choice.h"
#include "train/binarised_data.h"
#include "train/given_text.h"
#include "train/length_limits.h"
#include "train/settings.h"
#include "train/task.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

struct ReportFields {
  CorpusReport& report;

  template <class Visitor>
  void visit(Visitor& v) {
    v("lines", report.lines, "");
    v("pairs", report.pairs, "");
    v("empty", report.empty, "");
    v("too_long", report.too_long, "");
    v("source_tokens", report.source_tokens, "");
    v("target_tokens", report.target_tokens, "");
    v("source_unknown", report.source_unknown, "");
    v("target_unknown", report.target_unknown, "");
    v("source_cut", report.source_cut, "");
    v("target_cut", report.target_cut, "");
    v("blank", report.blank, "");
  }
};

/// Encodes lines and stops between two of them when asked to.
CorpusSide side_of(
    const std::vector<TextSource>& files, std::shared_ptr<const TextPipeline> pipeline) {
  return {
      .files = files,
      .encode =
          [pipeline](std::string_view line) {
            stop_preparing_if_asked();
            return pipeline->encode(line);
          },
      .encode_pieces =
          [pipeline](const LineInSlots& line) {
            stop_preparing_if_asked();
            return pipeline->encode_pieces(line.line, line.pieces);
          },
      .vocabulary = pipeline->vocabulary().size(),
      .check = [](const std::vector<int32_t>&) { stop_preparing_if_asked(); }};
}

/// Finds protected pieces of pairs; nothing where none are.
FindPairPieces pieces_of_pairs(const PieceKinds& kinds, Practice practice) {
  if (kinds.empty())
    return nullptr;
  return [kinds, practice](std::string_view source, std::string_view target) {
    return find_pair_pieces(source, target, kinds, practice);
  };
}

/// Sides that are text of another vocabulary.
std::vector<std::string> warnings_of(const CorpusReport& report) {
  std::vector<std::string> warnings;
  const auto add = [&](const char* side, int64_t tokens, int64_t unknown) {
    const SymbolCount count{tokens - report.pairs, unknown};
    if (count.is_mostly_unknown())
      warnings.push_back(concat("the ", side, " side: ", count.warning()));
  };
  add("source", report.source_tokens, report.source_unknown);
  add("target", report.target_tokens, report.target_unknown);
  return warnings;
}

/// A vocabulary most of whose symbols are too rare to be learned; "" where it is none.
std::string scarcity_of(const CorpusReport& report, int64_t symbols) {
  constexpr int64_t kLeastUses = 10;
  const int64_t tokens = report.source_tokens + report.target_tokens;
  if (tokens >= kLeastUses * symbols)
    return "";
  return concat(
      "the vocabulary is nearly as large as the text: ",
      symbols,
      " symbols for ",
      tokens,
      " tokens, fewer than ",
      kLeastUses,
      " each; lower text.subword_size, or raise text.min_count");
}

/// So many samples at most tell guided alignment which words translate each other.
constexpr int64_t kGuidingPairs = 50'000;

class TranslationTask : public TrainingTask {
 public:
  TranslationTask(const TrainConfig& config, at::Device device) : config_(config), device_(device) {
    loaded_.options = config.model;
    loaded_.decoding = config.decoding;
    loaded_.documents = config.data.documents();
  }

  void create(const TrainRequest& request) override {
    if (request.init_from.empty())
      learn();
    else
      take_from(request);
    loaded_.text.max_source_tokens = config_.data.max_source_tokens;
    if (is_guided())
      loaded_.alignment = AlignmentOptions::guided(config_.model.decoder.layers);
  }

  void open(const RootedPath& folder) override {
    loaded_ = load_model_config(folder, device_);
    loaded_.decoding = config_.decoding;
  }

  void write_config(const fs::path& folder) override {
    loaded_.folder = folder;
    write_description(loaded_);
  }

  CorpusRecipes recipes() const override {
    const DataOptions& data = config_.data;
    CorpusRecipes recipes{
        recipe(data.training_pairs(), Practice::kSome, /*is_learned=*/learned_), std::nullopt};
    if (const PairSources pairs = data.validation_pairs(); !pairs.source.empty())
      recipes.valid = recipe(pairs, Practice::kNone);
    return recipes;
  }

  std::shared_ptr<SequenceModel> model() const override { return loaded_.model.ptr(); }
  const TextOptions& text_options() const override { return loaded_.text.options; }
  Json describe() const override {
    return {
        {"source_vocabulary", loaded_.model->source_vocabulary()},
        {"target_vocabulary", loaded_.model->target_vocabulary()}};
  }
  std::optional<DecodingOptions> decoding_for(const SampleSource& training, bool fits) override {
    if (fits)
      fit_length_limits(training, config_.decoding);
    return loaded_.decoding = config_.decoding;
  }
  int64_t target_vocabulary() const override { return loaded_.model->target_vocabulary(); }

  std::shared_ptr<const SampleSource> for_training(
      std::shared_ptr<const SampleSource> samples) const override {
    if (!is_guided())
      return samples;
    auto words = std::make_shared<const WordAligner>(learn_words(
        *samples,
        loaded_.model->source_vocabulary(),
        loaded_.model->target_vocabulary(),
        kGuidingPairs));
    return aligned_samples(std::move(samples), std::move(words));
  }

  /// Chooses which looks at the source make alignments, unless one has learned them.
  void complete(const RootedPath& folder, const PreparedData& data) override {
    if (is_guided())
      return;
    const SampleSource& training = *data.train.samples;
    const AlignmentAgreement best = choose_alignment(
        *load_model(folder, device_).model, training, data.valid ? *data.valid->samples : training);
    if (best.f1 == 0)
      return;  // words do not tell
    loaded_.alignment = best.options;
    write_alignment(folder.path(), best.options);
    log_info(
        "alignments: decoder layer ",
        best.options.layer,
        best.options.heads.size() > 1 ? std::string(", all heads")
                                      : concat(", head ", best.options.heads.front()),
        best.options.next_step ? ", one step on" : "",
        "; F1 with the words' alignment: ",
        std::round(1000 * best.f1) / 10,
        " %");
  }
  bool is_complete() const override { return loaded_.alignment != AlignmentOptions(); }

  std::vector<TextScore> validation_scores(
      const std::vector<MetricKind>& metrics,
      Communicator& processes,
      const ValidationStop& stop) override {
    const bool first = valid_text_.sources.empty();
    if (first)
      valid_text_ = read_validation_text(config_.data, loaded_.text, limits());
    const auto hypotheses =
        translate_validation_text(loaded_, config_.decoding, valid_text_, processes, stop);
    const auto scores = score_validation_text(
        hypotheses,
        valid_text_.references,
        metrics,
        loaded_.text.options.lowercase,
        config_.metrics);
    if (first && processes.is_first())
      for (const TextScore& score : scores)
        log_info(
            "validation scores of ",
            valid_text_.references.size(),
            " pairs: ",
            enum_name(score.metric),
            "|",
            score.signature);
    return scores;
  }

 private:
  bool is_guided() const { return config_.training.guided_alignment > 0; }

  void learn() {
    const PairSources pairs = config_.data.training_pairs();
    TranslationText& text = loaded_.text;
    text =
        TranslationText::create(config_.text, text_files(pairs.source), text_files(pairs.target));
    if (text.source_samples.empty())
      text.source_samples = binarised_samples(pairs.source, *text.source);
    if (text.target_samples.empty())
      text.target_samples = binarised_samples(pairs.target, *text.target);
    learned_ = true;
    loaded_.model = TranslationModel(
        loaded_.options,
        text.source->vocabulary().size(),
        text.target->vocabulary().size(),
        static_cast<uint64_t>(config_.training.seed),
        device_);
  }

  void take_from(const TrainRequest& request) {
    const LoadedModel given = load_model({request.init_from, request.links});
    check_same_architecture(config_.model, given.options, request.init_from);
    const TextOptions& text = config_.text;
    check_given_text(
        request,
        given.text.options,
        {{"text.source_dictionary", text.source_dictionary, *given.text.source},
         {"text.target_dictionary", text.target_dictionary, *given.text.target}});
    loaded_.text = given.text;
    loaded_.model = TranslationModel(
        loaded_.options,
        given.model->source_vocabulary(),
        given.model->target_vocabulary(),
        std::nullopt,
        device_);
    copy_parameters(*given.model, *loaded_.model);
  }

  PairLimits limits() const {
    const ModelOptions& model = config_.model;
    return {
        .source = model.max_positions_of(model.encoder),
        .target = model.max_positions_of(model.decoder),
        .source_cut = config_.data.max_source_tokens,
        .target_cut = config_.data.max_target_tokens};
  }

  CorpusRecipe recipe(const PairSources& pairs, Practice practice, bool is_learned = false) const {
    return {
        [this, pairs, practice](const fs::path& stem) {
          CorpusReport report = write_pair_corpus(
              side_of(pairs.source, loaded_.text.source),
              side_of(pairs.target, loaded_.text.target),
              limits(),
              stem,
              pieces_of_pairs(loaded_.text.options.protect, practice));
          return write_options(ReportFields{report});
        },
        [this, is_learned](const fs::path& stem, const Json& table) -> PreparedCorpus {
          CorpusReport report;
          ReportFields fields{report};
          read_options(table, "report", fields);
          std::vector<std::string> warnings = warnings_of(report);
          const int64_t symbols =
              std::max(loaded_.model->source_vocabulary(), loaded_.model->target_vocabulary());
          if (const std::string scarcity = is_learned ? scarcity_of(report, symbols) : "";
              !scarcity.empty())
            warnings.push_back(scarcity);
          return {pair_samples(open_pair_corpus(stem)), report.summary(), std::move(warnings)};
        }};
  }

  TrainConfig config_;
  at::Device device_;
  LoadedModel loaded_;
  bool learned_ = false;       // the text, from the training files
  ValidationText valid_text_;  // when first needed
};

}  // namespace

std::shared_ptr<TrainingTask> make_translation_task(const TrainConfig& config, at::Device device) {
  return std::make_shared<TranslationTask>(config, device);
}

}  // namespace seqconv::internal
