#include "train/auto_settings.h"

#include <gmock/gmock.h>

#include "train/length_limits.h"
#include "train/options.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

/// Pairs of about ten words on both sides.
CorpusFacts facts_of(int64_t pairs) {
  return {
      .samples = pairs,
      .source_characters = 55 * pairs,
      .target_characters = 50 * pairs,
      .source_words = 10 * pairs,
      .target_words = 10 * pairs,
      .alphabet = 80};
}

/// A whole configuration, as a run has it.
TrainConfig config_of(const Json& given, const CorpusFacts& facts, const RunBudget& budget) {
  Json table = merge_beneath(given, choose_settings(given, facts, budget).table);
  if (!table["data"].contains("train"))
    table["data"]["train_source"] = table["data"]["train_target"] = "a";
  return read_train_config(table);
}

TEST(AutoSettings, AreAWholeConfigurationForEveryBudgetAndText) {
  for (const int64_t pairs : {10, 500, 5000, 20000, 200000, 30000000})
    for (const double minutes : {0.1, 1.0, 5.0, 60.0, 3000.0, 0.0})
      for (const bool on_gpu : {false, true}) {
        const RunBudget budget{.minutes = minutes, .threads = 2, .on_gpu = on_gpu};
        const Json given =
            minutes > 0 ? Json{{"training", {{"max_minutes", minutes}}}} : Json::object();
        const TrainConfig config = config_of(given, facts_of(pairs), budget);
        EXPECT_NO_THROW(config.validate()) << pairs << " " << minutes;
        EXPECT_GT(config.training.max_minutes, 0);
        EXPECT_EQ(config.schedule.kind, ScheduleKind::kLinear);
        EXPECT_LE(config.text.subword_size, 10 * pairs);
      }
}

TEST(AutoSettings, GrowWithTimeAndWithText) {
  const auto dim = [](int64_t pairs, double minutes) {
    return config_of({}, facts_of(pairs), {.minutes = minutes, .threads = 2}).model.dim;
  };
  EXPECT_LT(dim(100000, 2), dim(100000, 60));
  EXPECT_LT(dim(1000, 600), dim(1000000, 600));
  const auto pieces = [](int64_t pairs) {
    return config_of({}, facts_of(pairs), {.minutes = 600, .threads = 4}).text.subword_size;
  };
  EXPECT_LT(pieces(1000), pieces(20000));
  EXPECT_LT(pieces(20000), pieces(1000000));
}

TEST(AutoSettings, LeaveGivenKeysAndFitThem) {
  const Json given = Json::parse(R"({
    "model": {"dim": 96, "encoder": {"block": "self_attention"},
              "decoder": {"layers": 2, "block": ["talk", "lightconv"]}},
    "schedule": {"learning_rate": 0.5},
    "data": {"valid_source": "v", "valid_target": "w"}})");
  const RunBudget budget{.minutes = 5, .threads = 1};
  const AutoSettings chosen = choose_settings(given, facts_of(20000), budget);
  EXPECT_FALSE(chosen.table["model"].contains("dim"));
  EXPECT_FALSE(chosen.table["model"]["encoder"].contains("kernel_sizes"));
  EXPECT_EQ(chosen.table["model"]["decoder"]["kernel_sizes"], Json::array({0, 7}));
  EXPECT_EQ(chosen.table["model"]["decoder"]["max_offsets"], Json::array({3, 0}));
  EXPECT_FALSE(chosen.table["data"].contains("hold_out"));
  const TrainConfig config = config_of(given, facts_of(20000), budget);
  EXPECT_NO_THROW(config.validate());
  EXPECT_EQ(config.model.dim, 96);
  EXPECT_EQ(config.schedule.learning_rate, 0.5);
  bool says_why = false;
  for (const std::string& reason : chosen.reasons)
    says_why = says_why || reason.starts_with("text.subword_size = ");
  EXPECT_TRUE(says_why);
}

TEST(AutoSettings, ValidateOnlyWhereThereIsTextForItAndWithinThePasses) {
  const RunBudget day{.minutes = 1440, .threads = 1};
  const TrainConfig config = config_of({}, facts_of(20000), day);
  // 20,000 pairs of 17 tokens or so, 40 passes: about ten validations in these.
  const int64_t updates = 40 * 20000 * 17 / config.batching.max_tokens;
  EXPECT_GT(config.training.validate_every, 0);
  EXPECT_LT(config.training.validate_every, updates / 5);
  const Json none = Json::parse(R"({"data": {"hold_out": 0}})");
  EXPECT_NO_THROW(config_of(none, facts_of(20000), day).validate());
  EXPECT_EQ(config_of(none, facts_of(20000), day).training.validate_every, 0);
}

TEST(AutoSettings, AreForTheTimeThatTheTextCanUse) {
  const auto chosen = [](double minutes) {
    Json table = choose_settings({}, facts_of(20000), {.minutes = minutes, .threads = 2}).table;
    table["training"].erase("max_minutes");
    return table;
  };
  EXPECT_EQ(chosen(600), chosen(6000));
  EXPECT_NE(chosen(6), chosen(600));
}

TEST(AutoSettings, DropMoreTheMoreOftenTheTextIsSeen) {
  const auto dropout = [](const char* given, double minutes) {
    const RunBudget budget{.minutes = minutes, .threads = 1};
    const Json table = choose_settings(Json::parse(given), facts_of(20000), budget).table;
    return table["model"]["dropout"].get<double>();
  };
  const char* const updates = R"({"training": {"max_updates": 500}})";
  const char* const endless = R"({"training": {"max_epochs": 0}})";
  EXPECT_LT(dropout(updates, 0), dropout("{}", 600));
  EXPECT_LT(dropout(endless, 2), dropout(endless, 600));
}

TEST(AutoSettings, FitKeysThatAreGivenAlone) {
  const RunBudget budget{.minutes = 5, .threads = 1};
  for (const char* given :
       {R"({"text": {"joined": false}})",
        R"({"model": {"dim": 130}})",
        R"({"model": {"encoder": {"heads": 3}}})",
        R"({"text": {"subword": "bytes"}})",
        R"({"schedule": {"kind": "inverse_sqrt"}})"})
    EXPECT_NO_THROW(config_of(Json::parse(given), facts_of(20000), budget).validate()) << given;
  const Json warmup = Json::parse(R"({"schedule": {"warmup_updates": 10}})");
  const TrainConfig config = config_of(warmup, facts_of(20000), budget);
  EXPECT_EQ(config.schedule.warmup_share, 0);
  EXPECT_EQ(config.schedule.warmup_updates, 10);
}

TEST(AutoSettings, SuitLanguageModelsAndSummaries) {
  CorpusFacts text = facts_of(30000);
  text.source_characters = text.source_words = 0;
  const Json lines = Json::parse(R"({"task": "language_model", "data": {"train": "a"}})");
  const TrainConfig model = config_of(lines, text, {.minutes = 5, .threads = 2});
  EXPECT_NO_THROW(model.validate());
  EXPECT_EQ(model.training.label_smoothing, 0);
  CorpusFacts documents = facts_of(10000);
  documents.source_words *= 20;
  documents.source_characters *= 20;
  const Json keys =
      Json::parse(R"({"data": {"train": "a", "source_key": "d", "target_key": "s"}})");
  const TrainConfig summaries = config_of(keys, documents, {.minutes = 30, .threads = 2});
  EXPECT_NO_THROW(summaries.validate());
  EXPECT_GT(summaries.data.max_source_tokens, 0);
  EXPECT_GE(summaries.batching.max_tokens, 2048);
  EXPECT_LT(
      summaries.model.dim, config_of({}, facts_of(10000), {.minutes = 30, .threads = 2}).model.dim)
      << "long samples leave few updates";
}

TEST(AutoSettings, AreOfTheTextsAlphabet) {
  CorpusFacts japanese = facts_of(50000);
  japanese.alphabet = 2500;
  EXPECT_GT(
      config_of({}, japanese, {.minutes = 5, .threads = 1}).text.subword_size,
      japanese.alphabet + 500);
}

TEST(AutoSettings, AreTakenWhereNothingIsSaidOfSizes) {
  EXPECT_TRUE(says_nothing_of_sizes(Json::parse(R"({"data": {}, "text": {"joined": true}})")));
  EXPECT_FALSE(says_nothing_of_sizes(Json::parse(R"({"model": {}})")));
  EXPECT_FALSE(says_nothing_of_sizes(Json::parse(R"({"text": {"subword_size": 3}})")));
}

/// Samples of given lengths, </s> not counted.
class Lengths : public SampleSource {
 public:
  explicit Lengths(std::vector<std::pair<int64_t, int64_t>> pairs) : pairs_(std::move(pairs)) {}
  int64_t size() const override { return static_cast<int64_t>(pairs_.size()); }
  int64_t source_length(int64_t i) const override {
    return pairs_[static_cast<size_t>(i)].first + 1;
  }
  int64_t target_length(int64_t i) const override {
    return pairs_[static_cast<size_t>(i)].second + 1;
  }
  Batch batch(std::span<const uint32_t>) const override { return {}; }

 private:
  std::vector<std::pair<int64_t, int64_t>> pairs_;
};

TEST(LengthLimits, FitAllSamplesButAThousandth) {
  std::vector<std::pair<int64_t, int64_t>> pairs(2000, {10, 16});
  pairs.emplace_back(1, 500);  // a fault of the corpus
  DecodingOptions decoding;
  fit_length_limits(Lengths(pairs), decoding);
  EXPECT_DOUBLE_EQ(decoding.max_length_a, 1.0);  // 1.25 x 16 / (10 + 10)
  EXPECT_EQ(decoding.max_length_b, 10);
  pairs.assign(1000, {400, 20});  // as summaries are
  pairs.emplace_back(10, 30);
  fit_length_limits(Lengths(pairs), decoding);
  EXPECT_EQ(decoding.max_length_a, 0);
  EXPECT_EQ(decoding.max_length_b, 26);
  const DecodingOptions before;
  decoding = before;
  fit_length_limits(Lengths({}), decoding);
  EXPECT_EQ(decoding.max_length_b, before.max_length_b);
}

}  // namespace
}  // namespace seqconv::internal
