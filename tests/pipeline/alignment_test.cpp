#include "pipeline/alignment.h"

#include <gmock/gmock.h>

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

class AlignedTranslation : public ::testing::Test {
 protected:
  TranslationResult translate(TranslationInput request, const SearchOptions& search = {}) const {
    TranslationSystem system;
    system.text = text_;
    system.backend = std::make_shared<testing::TableTranslation>(
        text_.target->vocabulary().size(), testing::FailingWords{}, 0);
    request.search = search;
    return Translator(system, {.search = {.beam = 3, .max_length_b = 4}}).translate({request})[0];
  }

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

TEST_F(AlignedTranslation, OfNothingIsNothing) {
  const TranslationResult found = translate({{.text = "  ", .alignments = Alignments::kShares}});
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found.translations[0].alignment, IsEmpty());
}

}  // namespace
}  // namespace seqconv::internal
