#include "pipeline/alignment.h"

#include <gmock/gmock.h>

#include <new>

#include "pipeline/translator.h"
#include "support/temporary_folder.h"
#include "table_backend.h"

// Alignments of translations, over a backend whose looks are known.
namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AlignTokens, TakesThoseThatHaveHalfOfTheMost) {
  const SourceShares shares{
      4,
      {0.5F,
       0.3F,
       0.1F,
       0.1F,  // two of them
       0.1F,
       0.1F,
       0.1F,
       0.7F,  // </s>
       0.0F,
       0.1F,
       0.45F,
       0.45F,  // </s> as much as another, which comes first
       1.0F,
       0.0F,
       0.0F,
       0.0F}};  // of </s>
  EXPECT_THAT(
      align_tokens(shares),
      ElementsAre(AlignedTokens{0, 0}, AlignedTokens{1, 0}, AlignedTokens{2, 2}));
}

/// Says how many translations it was asked about at a time; has no memory for more than
/// `most`.
class CountingTranslation : public testing::TableTranslation {
 public:
  CountingTranslation(int64_t vocabulary, size_t most)
      : TableTranslation(vocabulary, testing::FailingWords{}, 0), most_(most) {}

  std::vector<SourceShares> source_shares(
      const std::vector<int32_t>& source,
      const std::vector<std::vector<int32_t>>& targets) const override {
    asked_.push_back(targets.size());
    if (targets.size() > most_)
      throw std::bad_alloc();
    return TableTranslation::source_shares(source, targets);
  }
  const std::vector<size_t>& asked() const { return asked_; }

 private:
  size_t most_;
  mutable std::vector<size_t> asked_;
};

class AlignedTranslation : public ::testing::Test {
 protected:
  TranslationSystem system(size_t most) {
    counting_ = std::make_shared<CountingTranslation>(text_.target->vocabulary().size(), most);
    TranslationSystem system;
    system.text = text_;
    system.backend = counting_;
    return system;
  }

  TranslationResult translate(
      TranslationInput request, const SearchOptions& search = {}, size_t most = 100) {
    request.search = search;
    return Translator(system(most), {.search = {.beam = 3, .max_length_b = 4}})
        .translate({request})[0];
  }

  /// The numbers of translations that are read at a time, of a source of so many tokens;
  /// </s> is counted nowhere.
  std::vector<size_t> groups(size_t source_tokens, const std::vector<size_t>& lengths) {
    const std::vector<int32_t> source(source_tokens, 4);
    std::vector<Hypothesis> found;
    for (const size_t length : lengths)
      found.emplace_back().tokens.assign(length + 1, 4);
    TranslationResult result;
    std::vector<Translation> translations(found.size());
    for (size_t i = 0; i < found.size(); ++i)
      translations[i].tokens.resize(lengths[i] + 1, "x");
    align(system(100), {.source = source, .text = "", .found = found}, result, translations);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(translations[i].token_ranges.size(), lengths[i] + 1);
    return counting_->asked();
  }

  std::shared_ptr<CountingTranslation> counting_;
  testing::TemporaryFolder folder_;
  std::string file_ = folder_.write("train", "eins zwei drei vier fünf sechs sieben acht\n");
  TranslationText text_ = TranslationText::create({.subword = Subword::kNone}, {file_}, {file_});
};

TEST_F(AlignedTranslation, IsThereWhereItIsAskedFor) {
  const TranslationResult plain = translate({{.text = "eins  neun drei"}});
  EXPECT_THAT(plain.source_tokens, IsEmpty());
  EXPECT_THAT(plain.translations[0].alignment, IsEmpty());
  const TranslationResult found =
      translate({{.text = "eins  neun drei", .alignments = Alignments::kPairs}});
  EXPECT_EQ(found.translations[0].text, plain.translations[0].text);
  EXPECT_EQ(found.translations[0].token_scores, plain.translations[0].token_scores);
  // The unknown word is told as it stands there.
  EXPECT_THAT(found.source_tokens, ElementsAre("eins", "neun", "drei", "</s>"));
  EXPECT_THAT(
      found.source_ranges,
      ElementsAre(ByteRange{0, 4}, ByteRange{6, 10}, ByteRange{11, 15}, ByteRange{15, 15}));
  EXPECT_THAT(found.translations[0].source_shares, IsEmpty());
}

TEST_F(AlignedTranslation, TellsOfEachTranslationOfAList) {
  const TranslationResult found =
      translate({{.text = "eins zwei drei", .alignments = Alignments::kShares}}, {.n_best = 3});
  ASSERT_EQ(found.translations.size(), 3U);
  for (const Translation& translation : found.translations) {
    const size_t tokens = translation.tokens.size();
    EXPECT_EQ(translation.token_ranges.size(), tokens);
    EXPECT_EQ(translation.source_shares.size(), tokens * 4);
    std::vector<AlignedTokens> wanted;  // token i at source token i
    for (int64_t i = 0; i < std::min<int64_t>(static_cast<int64_t>(tokens) - 1, 3); ++i)
      wanted.push_back({i, i});
    EXPECT_EQ(translation.alignment, wanted);
    for (size_t i = 0; i + 1 < tokens; ++i) {
      const auto [begin, end] = translation.token_ranges[i];
      EXPECT_EQ(
          translation.text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
          translation.tokens[i]);
    }
  }
}

TEST_F(AlignedTranslation, IsThereForDrawsPrefixesAndIds) {
  TranslationInput request{
      {.text = "eins zwei",
       .target_prefix = "acht",
       .sampling = SamplingOptions{.seed = 3},
       .alignments = Alignments::kPairs}};
  TranslationResult found = translate(request);
  ASSERT_TRUE(found.ok()) << found.error;
  EXPECT_EQ(found.translations[0].alignment[0], (AlignedTokens{0, 0}));
  request = {{.alignments = Alignments::kPairs}};
  request.ids = text_.source->encode("drei vier");
  found = translate(request);
  EXPECT_THAT(found.source_tokens, ElementsAre("drei", "vier", "</s>"));
  EXPECT_THAT(found.source_ranges, ElementsAre(ByteRange{0, 4}, ByteRange{5, 9}, ByteRange{9, 9}));
}

TEST_F(AlignedTranslation, ReadsAsManyAtATimeAsAreShort) {
  EXPECT_THAT(groups(5, std::vector<size_t>(50, 9)), ElementsAre(50));
  EXPECT_THAT(groups(95, std::vector<size_t>(50, 99)), ElementsAre(40, 10));  // 96 + 40 * 100
  EXPECT_THAT(groups(96, std::vector<size_t>(50, 99)), ElementsAre(39, 11));
  EXPECT_THAT(groups(5000, {9, 9, 9}), ElementsAre(1, 1, 1));
  EXPECT_THAT(groups(5, {9, 5000, 9, 9}), ElementsAre(1, 1, 2));
}

TEST_F(AlignedTranslation, IsFoundOneByOneWhereThereIsNotMemoryForAll) {
  const TranslationInput request{{.text = "eins zwei drei", .alignments = Alignments::kPairs}};
  const TranslationResult wanted = translate(request, {.n_best = 3});
  EXPECT_THAT(counting_->asked(), ElementsAre(3));
  const TranslationResult found = translate(request, {.n_best = 3}, /*most=*/1);
  EXPECT_THAT(counting_->asked(), ElementsAre(3, 1, 1, 1));
  ASSERT_TRUE(found.ok()) << found.error;
  EXPECT_EQ(found.source_tokens, wanted.source_tokens);
  ASSERT_EQ(found.translations.size(), 3U);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(found.translations[i].alignment, wanted.translations[i].alignment);
}

TEST_F(AlignedTranslation, OfWhichNoneHasRoomIsOutOfMemory) {
  const TranslationInput request{{.text = "eins zwei", .alignments = Alignments::kPairs}};
  const TranslationResult found = translate(request, {}, /*most=*/0);
  EXPECT_EQ(found.status, Status::kOutOfMemory);
  EXPECT_THAT(found.translations, IsEmpty());
  EXPECT_THAT(found.source_tokens, IsEmpty());
  EXPECT_TRUE(translate({{.text = "eins zwei"}}, {}, /*most=*/0).ok());
}

TEST_F(AlignedTranslation, OfNothingIsTheEndAlone) {
  for (const std::string text : {"", "  ", "\u3000"}) {
    const TranslationResult found = translate({{.text = text, .alignments = Alignments::kShares}});
    ASSERT_TRUE(found.ok());
    EXPECT_THAT(found.source_tokens, ElementsAre("</s>"));
    const int64_t end = std::ssize(text);
    EXPECT_THAT(found.source_ranges, ElementsAre(ByteRange{end, end}));
    ASSERT_EQ(found.translations.size(), 1U);
    EXPECT_THAT(found.translations[0].tokens, IsEmpty());
    EXPECT_THAT(found.translations[0].token_ranges, IsEmpty());
    EXPECT_THAT(found.translations[0].alignment, IsEmpty());
    EXPECT_THAT(found.translations[0].source_shares, IsEmpty());
    EXPECT_THAT(translate({{.text = text}}).source_tokens, IsEmpty());
  }
  TranslationInput ids{{.alignments = Alignments::kPairs}};
  ids.ids.emplace();
  EXPECT_THAT(translate(ids).source_ranges, ElementsAre(ByteRange{0, 0}));
}

}  // namespace
}  // namespace seqconv::internal
