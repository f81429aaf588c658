#include "pipeline/perplexity.h"

#include <gmock/gmock.h>

#include <numbers>
#include <set>
#include <sstream>

#include "language_folder.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LanguageSettings;

const std::string kText = "eins zwei drei\nfünf eins\n\nacht acht sieben vier drei zwei\n"
                          "sechs\n\n\nvier eins zwei\nsieben drei fünf sechs acht vier eins\n";

class Perplexity : public testing::LanguageFolder {
 protected:
  LoadedLanguageModel make_kind(
      SampleKind kind, int64_t block = 6, Subword subword = Subword::kNone) {
    LanguageSettings settings;
    settings.stream = {.samples = kind, .block_tokens = block};
    settings.text.subword = subword;
    return make(settings);
  }
};

TextCost measure(
    const LoadedLanguageModel& model,
    const std::string& text,
    const PerplexityOptions& options = {}) {
  const LanguageSystem system = make_system(model);
  PerplexityMeter meter(system, options);
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);)
    meter.add_line(line, concat("text:", ++number));
  return meter.finish();
}

/// Each begins with </s>, which is not predicted.
std::vector<std::vector<int64_t>> sequences(
    const LoadedLanguageModel& model, const std::string& text) {
  std::vector<std::vector<int64_t>> found = {{kEndId}};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const SampleKind kind = model.stream.samples;
    if (line.empty() && kind == SampleKind::kDocumentBlocks)
      found.push_back({kEndId});
    if (line.empty() && kind != SampleKind::kBlocks)
      continue;
    for (const int32_t id : model.text.text->encode(line))
      found.back().push_back(id);
    found.back().push_back(kEndId);
    if (kind == SampleKind::kLines)
      found.push_back({kEndId});
  }
  return found;
}

/// Bits of all tokens, each from a pass of its own over what it may see.
double brute_force(
    const LoadedLanguageModel& model, const std::string& text, int64_t block, int64_t context) {
  double bits = 0;
  for (const auto& ids : sequences(model, text))
    for (int64_t p = 1; p < std::ssize(ids); ++p) {
      const int64_t begin = (p - 1) / (block - context) * (block - context);
      const int64_t first = std::max<int64_t>(begin - context, 0);
      const auto next = testing::next_probabilities(model, {ids.begin() + first, ids.begin() + p});
      bits -= next[ids[static_cast<size_t>(p)]].item<double>();
    }
  return bits / std::numbers::ln2;
}

TEST_F(Perplexity, OfBlocksIsThatOfEachTokenAfterWhatItMaySee) {
  for (const SampleKind kind : {SampleKind::kBlocks, SampleKind::kDocumentBlocks}) {
    const LoadedLanguageModel model = make_kind(kind);
    const int64_t tokens = measure(model, kText).tokens;
    for (const int64_t block : {int64_t{4}, int64_t{7}, tokens, tokens + 3}) {
      std::set<int64_t> different;
      for (const int64_t context : {int64_t{0}, int64_t{1}, int64_t{3}, block - 1}) {
        const double wanted = brute_force(model, kText, block, context);
        for (const int64_t batch_tokens : {1, 20, 4096})
          EXPECT_NEAR(
              measure(model, kText, {block, context, batch_tokens}).bits, wanted, 1e-4 * wanted)
              << enum_name(kind) << ' ' << block << ' ' << context << ' ' << batch_tokens;
        different.insert(static_cast<int64_t>(wanted * 100));
      }
      EXPECT_GE(different.size(), block < 10 ? 3u : 1u) << "windows matter";
    }
  }
}

TEST_F(Perplexity, WithoutABlockItIsThatOfTraining) {
  const LoadedLanguageModel model = make_kind(SampleKind::kBlocks, 5);
  const double wanted = brute_force(model, kText, 5, 0);
  EXPECT_NEAR(measure(model, kText).bits, wanted, 1e-4 * wanted);
  EXPECT_GT(std::abs(wanted - brute_force(model, kText, 6, 0)), 1e-2 * wanted);
}

TEST_F(Perplexity, DocumentsAndLinesDoNotSeeEachOther) {
  const std::string one = "eins zwei\n", other = "acht drei vier\n";
  for (const SampleKind kind : {SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    const LoadedLanguageModel model = make_kind(kind, 50);
    const double wanted = measure(model, one).bits + measure(model, other).bits;
    EXPECT_NEAR(measure(model, one + "\n" + other).bits, wanted, 1e-5 * wanted);
  }
  const LoadedLanguageModel stream = make_kind(SampleKind::kBlocks, 50);
  EXPECT_GT(
      std::abs(
          measure(stream, one + other).bits - measure(stream, one).bits -
          measure(stream, other).bits),
      1e-2);
}

TEST_F(Perplexity, OfLinesIsThatOfEachLine) {
  const LoadedLanguageModel model = make_kind(SampleKind::kLines);
  const double wanted = brute_force(model, kText, 1000, 0);
  for (const int64_t batch_tokens : {1, 9, 4096})
    EXPECT_NEAR(measure(model, kText, {.batch_tokens = batch_tokens}).bits, wanted, 1e-4 * wanted);
}

TEST_F(Perplexity, CountsTokensWordsCharactersAndBytes) {
  const std::string text = "fünf  eins\n\nacht\n";
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    const int64_t blank = kind == SampleKind::kBlocks ? 1 : 0;
    const TextCost words = measure(make_kind(kind), text);
    EXPECT_EQ(words.tokens, 5 + blank);
    EXPECT_EQ(words.words, 5 + blank);
    EXPECT_EQ(words.characters, 16 + blank);
    EXPECT_EQ(words.bytes, 17 + blank);
    EXPECT_EQ(words.lines, 3);
    EXPECT_EQ(words.blank, 1);
    EXPECT_EQ(words.unknown, 0);
    EXPECT_EQ(measure(make_kind(kind, 6, Subword::kCharacters), text).tokens, 16 + blank);
    EXPECT_EQ(measure(make_kind(kind, 6, Subword::kBytes), text).tokens, 17 + blank);
  }
}

TEST_F(Perplexity, UnknownWordsCountWhereTheModelHasLearnedThem) {
  LanguageSettings settings;
  settings.training += "zwei\n";
  settings.text.min_count = 2;  // leaves eins and zwei
  const LoadedLanguageModel model = make(settings);
  EXPECT_EQ(measure(model, "eins zwei eins neun\n").unknown, 1);
  EXPECT_THAT(
      testing::error_of([&] { measure(model, "eins zwei neun neun\n"); }),
      HasSubstr("wrong text for this model's vocabulary: 2 of 4 symbols are unknown"));
}

TEST_F(Perplexity, AnUnknownWordThatWasNeverLearnedIsTold) {
  const LoadedLanguageModel model = make_kind(SampleKind::kBlocks);
  EXPECT_THAT(
      testing::error_of([&] { measure(model, "eins\nzwei neun zehn\n"); }),
      AllOf(
          HasSubstr("text:2: the symbol 'neun' is not in the model's"),
          HasSubstr("has never seen <unk>")));
}

TEST_F(Perplexity, TextWithoutWordsIsAnError) {
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    const LoadedLanguageModel model = make_kind(kind);
    for (const std::string text : {"", "\n \n"})
      EXPECT_THAT(
          testing::error_of([&] { measure(model, text); }),
          HasSubstr(text.empty() ? "of 0 lines 0 are blank" : "of 2 lines 2 are blank"));
  }
}

TEST_F(Perplexity, OptionsThatDoNotFitAreRefused) {
  const auto message = [](const LoadedLanguageModel& model, const PerplexityOptions& options) {
    return testing::error_of<UsageError>([&] { PerplexityMeter(make_system(model), options); });
  };
  LoadedLanguageModel model = make_kind(SampleKind::kBlocks, 6);
  EXPECT_THAT(
      message(model, {.context_window = 6}), HasSubstr("smaller than the block of 6 tokens"));
  EXPECT_THAT(message(model, {.block = 3, .context_window = 4}), HasSubstr("but got 4"));
  EXPECT_THAT(message(model, {.batch_tokens = 0}), HasSubstr("batch_tokens"));
  model.stream.samples = SampleKind::kLines;
  EXPECT_THAT(message(model, {.block = 3}), HasSubstr("single lines"));
  EXPECT_THAT(message(model, {.context_window = 3}), HasSubstr("single lines"));
}

TEST_F(Perplexity, LearnedPositionsBoundBlocksAndLines) {
  LanguageSettings settings;
  settings.model.positions = PositionKind::kLearned;
  settings.model.max_positions = 5;
  settings.stream.block_tokens = 5;
  LoadedLanguageModel model = make(settings);
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { PerplexityMeter(make_system(model), {.block = 6}); }),
      HasSubstr("at most the model's 5 learned positions, but got 6"));
  const double wanted = brute_force(model, kText, 5, 2);
  EXPECT_NEAR(measure(model, kText, {.context_window = 2}).bits, wanted, 1e-4 * wanted);
  model.stream.samples = SampleKind::kLines;
  EXPECT_EQ(measure(model, "eins zwei drei vier\n").tokens, 5);
  EXPECT_THAT(
      testing::error_of([&] { measure(model, "acht\nacht acht acht acht acht\n"); }),
      HasSubstr("text:2: a line of 6 tokens is longer than the model's 5"));
}

}  // namespace
}  // namespace seqconv::internal
