#include <gtest/gtest.h>

#include "base/log.h"
#include "support/temporary_folder.h"
#include "text/language_text.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

/// Texts of one small corpus.
class TextDifference : public ::testing::Test {
 protected:
  TextDifference() { set_log_level(LogLevel::kError); }
  ~TextDifference() override { set_log_level(LogLevel::kInfo); }

  TranslationText create(const TextOptions& options) const {
    return TranslationText::create(options, {source_}, {target_});
  }

  testing::TemporaryFolder folder_;
  std::string source_ = folder_.write("src", "ein Hund\nzwei Hunde\nein\n");
  std::string target_ = folder_.write("tgt", "a dog\ntwo dogs\na\n");
};

TEST_F(TextDifference, IsAnOptionThatChangesLines) {
  const TextOptions plain{.subword = Subword::kCharacters};
  const TranslationText text = create(plain);
  const std::string dictionary = folder_.write("dict.txt", text.source->vocabulary().to_text());
  TextOptions lower = plain;
  lower.lowercase = true;
  lower.source_dictionary = dictionary;
  EXPECT_EQ(difference(text, create(lower)), "lowercase");
  EXPECT_EQ(difference(create(lower), text), "lowercase");
  EXPECT_EQ(difference(text, create({.subword = Subword::kNone})), "subword");
  TextOptions moses{.tokenizer = Tokenizer::kMoses, .subword = Subword::kNone};
  moses.source_language = "de";
  moses.target_language = "en";
  EXPECT_EQ(difference(create({.subword = Subword::kNone}), create(moses)), "tokenizer");
  TextOptions other = moses;
  other.target_language = "fr";
  EXPECT_EQ(difference(create(moses), create(other)), "target_language");
  TranslationText cut = text;
  cut.max_source_tokens = 3;
  EXPECT_EQ(difference(text, cut), "max_source_tokens");
  EXPECT_EQ(difference(cut, cut), "");
}

TEST_F(TextDifference, IsNeitherAJoinedVocabularyNorCountsNorSamples) {
  const TranslationText text = create({.subword = Subword::kCharacters});
  TextOptions options{.subword = Subword::kCharacters, .joined = false};
  std::string counted_anew = text.source->vocabulary().to_text();
  counted_anew.replace(counted_anew.find(' ') + 1, 1, "9");
  options.source_dictionary = folder_.write("a.txt", counted_anew);
  options.target_dictionary = options.source_dictionary;
  TranslationText same = create(options);
  same.source_samples.clear();
  EXPECT_EQ(difference(text, same), "");
}

TEST_F(TextDifference, IsADictionaryOrASubwordModel) {
  EXPECT_EQ(
      difference(
          create({.subword = Subword::kNone}),
          create({.subword = Subword::kNone, .joined = false})),
      "source dictionary");
  const auto learned = [&](int64_t merges) {
    return create({.subword = Subword::kBpe, .subword_size = merges});
  };
  const TranslationText few = learned(3);
  const TranslationText more = learned(4);
  const auto with_codes_of = [&](const TranslationText& given) {
    TranslationText made = few;
    made.target = std::make_shared<const TextPipeline>(
        make_bpe_segmenter(Bpe::parse(given.source->segmenter().model(), "codes")),
        std::make_shared<const Vocabulary>(few.source->vocabulary()));
    return made;
  };
  EXPECT_EQ(difference(few, with_codes_of(few)), "");
  EXPECT_EQ(difference(few, with_codes_of(more)), "target subword model");
}

TEST_F(TextDifference, OfLanguageModelsIsAlsoWhetherTheyKnowUnk) {
  const auto create = [&](const TextOptions& options) {
    return LanguageText::create(options, {source_});
  };
  const LanguageText text = create({.subword = Subword::kNone});
  LanguageText other = text;
  EXPECT_EQ(difference(text, other), "");
  other.knows_unknown = true;
  EXPECT_EQ(difference(text, other), "unknown");
  EXPECT_EQ(difference(text, create({.subword = Subword::kCharacters})), "subword");
}

}  // namespace
}  // namespace seqconv::internal
