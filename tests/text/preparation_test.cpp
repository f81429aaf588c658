#include "text/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "text/language_text.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr const char* kFrench = "L'homme dort.\nLe chien (petit) court, l'homme aussi.\n";
constexpr const char* kEnglish = "The man's asleep.\nThe dog (a small one) runs, the man too.\n";

/// What a model of Moses tokens learns from, with each kind of subwords.
class MosesText : public ::testing::TestWithParam<Subword> {
 protected:
  MosesText() {
    set_log_level(LogLevel::kError);
    source_ = folder_.write("train.fr", kFrench);
    target_ = folder_.write("train.en", kEnglish);
  }
  ~MosesText() override { set_log_level(LogLevel::kInfo); }

  static TextOptions options(Subword subword = Subword::kNone) {
    TextOptions options;
    options.tokenizer = Tokenizer::kMoses;
    options.source_language = "fr";
    options.target_language = "en";
    options.subword = subword;
    options.subword_size = subword == Subword::kBpe ? 20 : 60;
    return options;
  }
  static TextOptions language_options(Subword subword = Subword::kNone) {
    TextOptions language = options(subword);
    language.source_language = language.target_language = "";
    language.language = "en";
    return language;
  }
  TranslationText create(const TextOptions& options) const {
    return TranslationText::create(options, {source_}, {target_});
  }

  TemporaryFolder folder_;
  std::string source_;
  std::string target_;
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, MosesText, ::testing::Values(Subword::kNone, Subword::kBpe, Subword::kSentencePiece));

TEST_P(MosesText, RawLinesComeBackAsTheyWere) {
  for (const bool joined : {false, true}) {
    TextOptions o = options(GetParam());
    o.joined = joined;
    const TranslationText text = create(o);
    for (const char* line : {"L'homme dort.", "Le chien (petit) court."})
      EXPECT_EQ(text.source->decode(text.source->encode(line)), line);
    const char* line = "The man's asleep, the dog too.";
    EXPECT_EQ(text.target->decode(text.target->encode(line)), line);
  }
}

TEST_P(MosesText, SavedTextLoadsAndEncodesTheSame) {
  for (const bool joined : {false, true}) {
    TextOptions o = options(GetParam());
    o.joined = joined;
    o.lowercase = o.moses_escape = o.moses_split_dashes = true;
    const TranslationText text = create(o);
    const auto model = folder_.path() / "model";
    const Json json = Json::parse(text.save(model).dump());
    const TranslationText loaded = TranslationText::load(model, json);
    EXPECT_EQ(loaded.options.tokenizer, Tokenizer::kMoses);
    for (const char* line : {"L'homme-chien dort & court.", "It's <a> dog."}) {
      EXPECT_EQ(loaded.source->encode(line), text.source->encode(line));
      EXPECT_EQ(loaded.target->encode(line), text.target->encode(line));
      EXPECT_EQ(loaded.source->segment(line), text.source->segment(line));
    }
    EXPECT_EQ(loaded.save(folder_.path() / "again"), json);
  }
}

TEST_P(MosesText, LanguageModelsTokeniseTheirOneText) {
  const LanguageText text = LanguageText::create(language_options(GetParam()), {target_});
  const char* line = "The dog's asleep, the man too.";
  EXPECT_EQ(text.text->decode(text.text->encode(line)), line);
  const auto model = folder_.path() / "model";
  const Json json = text.save(model);
  EXPECT_EQ(json["language"], "en");
  const LanguageText loaded = LanguageText::load(model, json);
  EXPECT_EQ(loaded.text->encode(line), text.text->encode(line));
  EXPECT_EQ(loaded.save(folder_.path() / "again"), json);
}

TEST_F(MosesText, EachSideIsTokenisedByItsOwnLanguage) {
  for (const bool joined : {false, true}) {
    TextOptions o = options();
    o.joined = joined;
    const TranslationText text = create(o);
    EXPECT_THAT(text.source->segment("l'homme's"), ElementsAre("l'", "homme'", "s"));
    EXPECT_THAT(text.target->segment("l'homme's"), ElementsAre("l", "'homme", "'s"));
    EXPECT_EQ(&text.source->vocabulary() == &text.target->vocabulary(), joined);
  }
}

TEST_F(MosesText, OptionsReachTheTokens) {
  TextOptions o = options();
  EXPECT_THAT(create(o).target->segment("A-B & Mr. X"), ElementsAre("A-B", "&", "Mr.", "X"));
  o.moses_escape = o.moses_split_dashes = o.lowercase = true;
  const TranslationText text = create(o);
  // Lower case comes last: before it, "mr." would be the end of a sentence.
  EXPECT_THAT(
      text.target->segment("A-B & Mr. X\tY"),
      ElementsAre("a", "@-@", "b", "&amp;", "mr.", "x", "y"));
}

TEST_F(MosesText, SubwordsAndVocabularyAreLearnedFromTokens) {
  const MosesTokenizer french("fr");
  const MosesTokenizer english("en");
  const auto tokens = [&](const MosesTokenizer& tokenizer, std::string text) {
    std::string lines;
    for (size_t end; !text.empty(); text.erase(0, end + 1)) {
      end = text.find('\n');
      lines += tokenizer.tokenize(text.substr(0, end)) + "\n";
    }
    return lines;
  };
  const auto source = folder_.write("tokens.fr", tokens(french, kFrench));
  const auto target = folder_.write("tokens.en", tokens(english, kEnglish));
  for (const Subword subword : {Subword::kNone, Subword::kBpe, Subword::kSentencePiece}) {
    TextOptions plain;
    plain.subword = subword;
    plain.subword_size = options(subword).subword_size;
    const auto raw = create(options(subword));
    const auto tokenised = TranslationText::create(plain, {source}, {target});
    EXPECT_EQ(raw.source->segmenter().model(), tokenised.source->segmenter().model());
    EXPECT_EQ(raw.source->vocabulary().to_text(), tokenised.source->vocabulary().to_text());
  }
}

TEST_F(MosesText, FoldersWithoutATokenizerSayNothingOfOne) {
  TextOptions o;
  o.subword = Subword::kNone;
  const TranslationText text = create(o);
  EXPECT_EQ(text.source, text.target);
  std::vector<std::string> keys;
  const Json json = text.save(folder_.path() / "model");
  for (const auto& [key, value] : json.items())
    keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("subword", "lowercase", "joined", "source", "target"));
}

TEST_F(MosesText, FoldersWithATokenizerMustNameTheLanguages) {
  const auto model = folder_.path() / "model";
  const Json good = create(options()).save(model);
  const auto load = [&](const Json& text) {
    return error_of([&] { TranslationText::load(model, text); });
  };
  EXPECT_NO_THROW(TranslationText::load(model, good));
  for (const char* key : {"source_language", "target_language", "moses_escape"}) {
    Json bad = good;
    bad.erase(key);
    EXPECT_THAT(load(bad), AllOf(HasSubstr("malformed"), HasSubstr(key)));
  }
  Json bad = good;
  bad["tokenizer"] = "penn";
  EXPECT_THAT(load(bad), HasSubstr("text.tokenizer"));
  bad = good;
  bad["source_language"] = "fr\n";
  EXPECT_THAT(load(bad), HasSubstr("text.source_language"));
  bad = good;
  bad["source_language"] = "de";
  EXPECT_THAT(load(bad), HasSubstr("wrong vocabulary for this model"));
}

TEST_F(MosesText, LanguagesAndTokenizerMustFit) {
  const auto message = [&](auto change) {
    TextOptions o = options();
    change(o);
    return error_of([&] { create(o); });
  };
  EXPECT_THAT(
      message([](TextOptions& o) { o.target_language = ""; }),
      HasSubstr("text.tokenizer = 'moses' needs text.target_language"));
  EXPECT_THAT(
      message([](TextOptions& o) { o.source_language = "French"; }),
      AllOf(HasSubstr("text.source_language"), HasSubstr("got 'French'")));
  EXPECT_THAT(
      message([](TextOptions& o) { o.language = "en"; }),
      HasSubstr("text.language = 'en' has no effect here"));
  EXPECT_THAT(
      message([](TextOptions& o) { o.tokenizer = Tokenizer::kNone; }),
      HasSubstr("text.source_language needs text.tokenizer = 'moses'"));
  for (const Subword subword : {Subword::kCharacters, Subword::kBytes})
    EXPECT_THAT(
        message([&](TextOptions& o) { o.subword = subword; }),
        HasSubstr("text.tokenizer = 'moses' makes words"));
  TextOptions escape;
  escape.moses_escape = true;
  EXPECT_THAT(
      error_of([&] { create(escape); }),
      HasSubstr("text.moses_escape needs text.tokenizer = 'moses'"));
  TextOptions language = language_options();
  language.source_language = "de";
  EXPECT_THAT(
      error_of([&] { LanguageText::create(language, {target_}); }),
      HasSubstr("a language model has text.language"));
  language = language_options();
  language.language = "";
  EXPECT_THAT(
      error_of([&] { LanguageText::create(language, {target_}); }),
      HasSubstr("needs text.language"));
}

}  // namespace
}  // namespace seqconv::internal
