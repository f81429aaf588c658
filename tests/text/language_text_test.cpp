#include "text/language_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr const char* kLanguageText = "A dog runs .\nTwo dogs run .\n\nA dog sleeps .\n";

/// Training text and options of a small language model.
class LanguageTextTest : public ::testing::TestWithParam<Subword> {
 protected:
  LanguageTextTest() {
    set_log_level(LogLevel::kError);
    file_ = folder_.write("train", kLanguageText);
    model_ = folder_.path() / "model";
  }
  ~LanguageTextTest() override { set_log_level(LogLevel::kInfo); }

  LanguageText create(const TextOptions& options) const {
    return LanguageText::create(options, {file_});
  }
  static TextOptions options(Subword subword) {
    TextOptions options;
    options.subword = subword;
    options.subword_size = subword == Subword::kBpe ? 12 : 40;
    return options;
  }
  /// A text of words whose vocabulary is `dictionary` ("" builds it).
  LanguageText words(
      const std::string& content, const std::string& dictionary = "", int64_t min_count = 1) const {
    TextOptions o = options(Subword::kNone);
    o.min_count = min_count;
    if (!dictionary.empty())
      o.dictionary = folder_.write("dict", dictionary);
    return LanguageText::create(o, {folder_.write("words", content)});
  }

  TemporaryFolder folder_;
  std::string file_;
  std::filesystem::path model_;
};

TEST_P(LanguageTextTest, SavedTextLoadsAndEncodesTheSame) {
  TextOptions o = options(GetParam());
  o.lowercase = true;
  LanguageText text = create(o);
  for (const bool knows : {true, false}) {
    text.knows_unknown = knows;
    const Json json = Json::parse(text.save(model_).dump());
    const LanguageText loaded = LanguageText::load(model_, json);
    EXPECT_EQ(loaded.options.subword, GetParam());
    EXPECT_TRUE(loaded.options.lowercase);
    EXPECT_EQ(loaded.knows_unknown, knows);
    EXPECT_EQ(loaded.samples, text.samples);
    for (const char* line : {"A DOG runs .", "sleeps 漢 dogs", "  "})
      EXPECT_EQ(loaded.text->encode(line), text.text->encode(line));
    EXPECT_EQ(loaded.text->encode("A DOG"), loaded.text->encode("a dog"));
    EXPECT_EQ(loaded.text->decode(loaded.text->encode("A dog .")), "a dog .");
    EXPECT_EQ(loaded.save(folder_.path() / "again"), json);
  }
  EXPECT_FALSE(text.samples.empty());
}

TEST_P(LanguageTextTest, FilesHaveNoPrefix) {
  const Json json = create(options(GetParam())).save(model_);
  EXPECT_EQ(json["side"]["dictionary"], "dict.txt");
  const Json model = json["side"].value("model", Json());
  switch (GetParam()) {
    case Subword::kBpe:
      EXPECT_EQ(model, "bpe.codes");
      break;
    case Subword::kSentencePiece:
      EXPECT_EQ(model, "sentencepiece.model");
      break;
    case Subword::kNone:
    case Subword::kCharacters:
    case Subword::kBytes:
      EXPECT_TRUE(model.is_null()) << model;
  }
  EXPECT_TRUE(std::filesystem::exists(model_ / "dict.txt"));
}

TEST_P(LanguageTextTest, AnotherVocabularyIsRefused) {
  const Json json = create(options(GetParam())).save(model_);
  std::string dictionary = read_file(model_ / "dict.txt");
  const size_t end = dictionary.find('\n') + 1;
  // The two most frequent symbols change places.
  const size_t second = dictionary.find('\n', end) + 1;
  write_file_atomically(
      model_ / "dict.txt",
      dictionary.substr(end, second - end) + dictionary.substr(0, end) + dictionary.substr(second));
  EXPECT_THAT(
      error_of([&] { LanguageText::load(model_, json); }),
      ::testing::StartsWith(model_.string() + ": wrong vocabulary for this model: the sample '"));
}

TEST_P(LanguageTextTest, ItsOwnTrainingTextHasNothingUnknown) {
  EXPECT_FALSE(create(options(GetParam())).knows_unknown);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    LanguageTextTest,
    ::testing::Values(
        Subword::kNone,
        Subword::kBpe,
        Subword::kSentencePiece,
        Subword::kCharacters,
        Subword::kBytes));

TEST_F(LanguageTextTest, TheVocabularyCountsAllFiles) {
  const auto other = folder_.write("other", "dog cat\n");
  const auto text = LanguageText::create(options(Subword::kNone), {file_, other});
  EXPECT_THAT(text.text->vocabulary().to_text(), HasSubstr("dog 3\n"));
  EXPECT_THAT(text.text->vocabulary().to_text(), HasSubstr("cat 1\n"));
}

TEST_F(LanguageTextTest, ATextOfOneLongLineHasASampleToo) {
  std::string line = "a";
  for (int i = 0; i < 1000; ++i)
    line += "é";
  const auto text = LanguageText::create(
      options(Subword::kCharacters), {folder_.write("long", "\n" + line + "\n" + line)});
  EXPECT_THAT(text.samples, ::testing::ElementsAre(line.substr(0, 999)))
      << "999 bytes are whole characters, 1000 are not";
}

TEST_F(LanguageTextTest, RareSymbolsTeachUnknown) {
  EXPECT_FALSE(words("a a b b\n").knows_unknown);
  EXPECT_TRUE(words("a a b b c\n", "", 2).knows_unknown);
  EXPECT_TRUE(words("a b c d e f\n", "", 2).knows_unknown)
      << "a vocabulary of one's own may leave all out";
}

TEST_F(LanguageTextTest, AWordUnkIsUnknownAndTeachesIt) {
  const LanguageText text = words("a <unk> b\n<unk> <unk>\n");
  EXPECT_EQ(text.text->encode("b <unk> a"), (Ids{5, 3, 4}));
  EXPECT_TRUE(text.knows_unknown);
  EXPECT_TRUE(words("<unk> <unk> <unk> a\n", "a 1\n").knows_unknown)
      << "<unk> of the text does not speak against the dictionary";
  EXPECT_FALSE(LanguageText::create(
                   options(Subword::kCharacters), {folder_.write("characters", "a <unk>\n")})
                   .knows_unknown)
      << "in characters it is five of them";
}

TEST_F(LanguageTextTest, AGivenDictionaryIsTakenAsItIs) {
  const LanguageText text = words("b a b\n", "a 7\nb 9\n");
  EXPECT_EQ(text.text->vocabulary().to_text(), "a 7\nb 9\n");
  EXPECT_EQ(text.text->encode("b a"), (Ids{5, 4}));
  EXPECT_FALSE(text.knows_unknown);
  EXPECT_TRUE(words("b a c\n", "a 7\nb 9\n").knows_unknown);
}

TEST_F(LanguageTextTest, ADictionaryOfOtherTextIsRefused) {
  EXPECT_EQ(
      error_of([&] { words("<unk> a\na x y <s>\n", "a 1\n"); }),
      (folder_.path() / "dict").string() +
          ": wrong dictionary for this text: 3 of 6 symbols are unknown (the first: 'x')");
  EXPECT_TRUE(words("<unk> a\na x y a\n", "a 1\n").knows_unknown) << "less than half is allowed";
}

TEST_F(LanguageTextTest, KeysThatDoNotBelongAreUsageErrors) {
  TextOptions o = options(Subword::kNone);
  o.source_dictionary = "s.txt";
  EXPECT_EQ(
      error_of<UsageError>([&] { create(o); }),
      "text.source_dictionary = 's.txt' is for translation models, but this is a language model, "
      "whose dictionary is text.dictionary");
  o.source_dictionary.clear();
  o.target_dictionary = "t.txt";
  EXPECT_THAT(
      error_of<UsageError>([&] { create(o); }),
      HasSubstr("text.target_dictionary = 't.txt' is for translation models"));
  o.target_dictionary.clear();
  o.dictionary = "d.txt";
  o.max_vocabulary = 10;
  EXPECT_EQ(
      error_of<UsageError>([&] { create(o); }),
      "text.max_vocabulary has no effect with text.dictionary: the dictionary is taken as it is");
}

TEST_F(LanguageTextTest, TextThatGivesNothingIsAnError) {
  EXPECT_EQ(
      error_of([&] { LanguageText::create(options(Subword::kNone), {}); }),
      "the text of a language model needs training files, but got none");
  for (const char* content : {"", "\n\r\n\n"})
    for (const Subword subword : {Subword::kNone, Subword::kCharacters, Subword::kBytes}) {
      const auto empty = folder_.write("empty", content);
      EXPECT_EQ(
          error_of([&] { LanguageText::create(options(subword), {empty}); }),
          "a vocabulary needs text, but '" + empty + "' holds no line that is not blank");
    }
  const auto bad = folder_.write("bad", "fine\n\xC3(\n");
  EXPECT_THAT(
      error_of([&] {
        LanguageText::create(options(Subword::kBytes), {file_, bad});
      }),
      HasSubstr(bad + ":2: UTF-8 was wanted, but byte 1"));
}

TEST_F(LanguageTextTest, ModelsOfTheOtherKindAreRefused) {
  TextOptions o = options(Subword::kNone);
  const Json translation = TranslationText::create(o, {file_}, {file_}).save(model_);
  EXPECT_EQ(
      error_of([&] { LanguageText::load(model_, translation); }),
      model_.string() +
          ": the text of a language model was wanted, but this is a translation model's");
  const Json language = create(o).save(model_);
  EXPECT_EQ(
      error_of([&] { TranslationText::load(model_, language); }),
      model_.string() +
          ": the text of a translation model was wanted, but this is a language model's");
}

TEST_F(LanguageTextTest, ADamagedModelFolderIsAnError) {
  const Json json = create(options(Subword::kBpe)).save(model_);
  const auto message = [&](const Json& text) {
    return error_of([&] { LanguageText::load(model_, text); });
  };
  for (const char* key : {"subword", "lowercase", "unknown", "side"})
    for (const Json& value : {Json(), Json(7), Json("x"), Json::array()}) {
      Json changed = json;
      changed[key] = value;
      EXPECT_FALSE(message(changed).empty());
      changed.erase(key);
      EXPECT_THAT(
          message(changed), HasSubstr("the text part of the model's configuration is malformed"));
    }
  for (const char* key : {"dictionary", "model", "samples"}) {
    Json changed = json;
    changed["side"].erase(key);
    EXPECT_THAT(message(changed), HasSubstr("is malformed"));
  }
  Json outside = json;
  outside["side"]["dictionary"] = "../dict.txt";
  EXPECT_THAT(
      message(outside), HasSubstr("text dictionary must name a file inside the model folder"));
  EXPECT_THAT(message(Json::array()), HasSubstr("is malformed"));
}

TEST_F(LanguageTextTest, UnknownSymbolsNeedAModelThatKnowsThem) {
  const LanguageText plain = words("a b\n");
  const auto check =
      [](const LanguageText& text, const std::string& line, const std::string& where) {
        check_known(text, line, text.text->encode(line), where);
      };
  EXPECT_EQ(
      error_of([&] { check(plain, "b x a y", "f.txt:3"); }),
      "f.txt:3: the symbol 'x' is not in the model's vocabulary, and the model has never seen "
      "<unk> in training");
  EXPECT_THAT(
      error_of([&] { check(plain, "a <unk>", ""); }),
      ::testing::StartsWith("the symbol '<unk>' is not in"));
  EXPECT_NO_THROW(check(plain, "b a", "f.txt:3"));
  EXPECT_NO_THROW(check(plain, "", "f.txt:3"));
  EXPECT_NO_THROW(check(words("a b <unk>\n"), "b x a y", "f.txt:3"));
}

}  // namespace
}  // namespace seqconv::internal
