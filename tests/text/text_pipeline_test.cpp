#include "text/text_pipeline.h"
#include "text/learning/sentencepiece_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/utf8.h"
#include "support/errors.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "text/segmenter.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr const char* kSource = "Ein Hund läuft .\nZwei Hunde laufen .\n\nEin Hund schläft .\n";
constexpr const char* kTarget = "A dog runs .\nTwo dogs run .\n\nA dog sleeps .\n";

/// Training files and options of a small task.
class TextTest : public ::testing::TestWithParam<std::tuple<Subword, bool>> {
 protected:
  TextTest() {
    set_log_level(LogLevel::kError);
    source_ = folder_.write("train.src", kSource);
    target_ = folder_.write("train.tgt", kTarget);
  }
  ~TextTest() override { set_log_level(LogLevel::kInfo); }

  TranslationText create(const TextOptions& options) const {
    return TranslationText::create(options, {source_}, {target_});
  }
  TextOptions options(Subword subword, bool joined) const {
    TextOptions options;
    options.subword = subword;
    options.joined = joined;
    options.subword_size = subword == Subword::kBpe ? 12 : 60;
    return options;
  }

  TemporaryFolder folder_;
  std::string source_;
  std::string target_;
};

using TextPipelineTest = TextTest;  // every kind
using SubwordTextTest = TextTest;   // the kinds that leave blanks out

TEST_P(TextPipelineTest, DecodesWhatItEncodes) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  for (const char* line : {"Ein Hund läuft .", "Zwei Hunde laufen ."})
    EXPECT_EQ(text.source->decode(text.source->encode(line)), line);
  EXPECT_EQ(text.target->decode(text.target->encode("A dog runs .")), "A dog runs .");
  EXPECT_EQ(text.source->vocabulary().size() % 8, 0);
  EXPECT_EQ(text.source == text.target, joined);
}

TEST_P(SubwordTextTest, BlankLinesHaveNoIds) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  for (const char* line : {"", " ", " \t \r", "\xC2\xA0", "\xE3\x80\x80"})
    EXPECT_TRUE(text.source->encode(line).empty()) << "'" << line << "'";
  EXPECT_EQ(text.source->decode({}), "");
}

TEST_P(TextPipelineTest, TextCannotForgeSpecialIds) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  for (const char* line : {"<s>", "</s> Hund", "<pad>", "<unk>", "a</w>@@ b"})
    for (int32_t id : text.source->encode(line))
      EXPECT_GE(id, kUnknownId) << line;
}

TEST_P(SubwordTextTest, UnknownSymbolsPrintAsUnk) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  const Ids ids = text.source->encode("Ein 漢 .");
  EXPECT_THAT(ids, ::testing::Contains(kUnknownId));
  EXPECT_EQ(text.source->decode(ids), "Ein <unk> .");
}

TEST_P(TextPipelineTest, SpecialIdsAreLeftOutOfTheText) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  Ids ids = text.source->encode("Ein Hund");
  ids.insert(ids.begin(), {kEndId, kBeginId});
  ids.insert(ids.end(), {kEndId, kPadId});
  EXPECT_EQ(text.source->decode(ids), "Ein Hund");
  const std::vector<std::string> symbols = text.source->symbols(ids);
  EXPECT_THAT(std::vector(symbols.end() - 2, symbols.end()), ElementsAre("</s>", "<pad>"));
  EXPECT_THAT(error_of([&] { text.source->decode({100'000}); }), HasSubstr("but got 100000"));
}

TEST_P(TextPipelineTest, SavedTextLoadsAndEncodesTheSame) {
  const auto [subword, joined] = GetParam();
  TextOptions o = options(subword, joined);
  o.lowercase = true;
  const TranslationText text = create(o);
  const auto model = folder_.path() / "model";
  const Json json = Json::parse(text.save(model).dump());
  const TranslationText loaded = TranslationText::load(model, json);
  EXPECT_EQ(loaded.options.subword, subword);
  EXPECT_EQ(loaded.options.joined, joined);
  EXPECT_TRUE(loaded.options.lowercase);
  for (const char* line : {"EIN HUND läuft .", "sleeps 漢 dogs"}) {
    EXPECT_EQ(loaded.source->encode(line), text.source->encode(line));
    EXPECT_EQ(loaded.target->encode(line), text.target->encode(line));
  }
  EXPECT_EQ(loaded.source->encode("EIN HUND"), loaded.source->encode("ein hund"));
  const auto again = folder_.path() / "again";
  EXPECT_EQ(loaded.save(again), json);
  EXPECT_EQ(std::filesystem::exists(model / "dict.txt"), joined);
  EXPECT_EQ(std::filesystem::exists(model / "source.dict.txt"), !joined);
}

TEST_P(TextPipelineTest, AnotherVocabularyIsRefused) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  const auto model = folder_.path() / "model";
  const Json json = text.save(model);
  const std::string name = json["target"]["dictionary"];
  std::string dictionary = read_file(model / name);
  const size_t end = dictionary.find('\n') + 1;
  // The two most frequent symbols change places.
  const size_t second = dictionary.find('\n', end) + 1;
  write_file_atomically(
      model / name,
      dictionary.substr(end, second - end) + dictionary.substr(0, end) + dictionary.substr(second));
  const std::string message = error_of([&] { TranslationText::load(model, json); });
  EXPECT_THAT(message, HasSubstr("wrong vocabulary for this model: the sample"));
  EXPECT_THAT(message, HasSubstr(" encodes to "));
  EXPECT_THAT(message, HasSubstr(" was recorded"));
}

TEST_P(TextPipelineTest, AnyBytesEncodeToValidIds) {
  const auto [subword, joined] = GetParam();
  const TranslationText text = create(options(subword, joined));
  std::mt19937 random(11);
  for (int round = testing::rounds(500); round > 0; --round) {
    std::string line;
    for (unsigned n = random() % 60; n > 0; --n)
      line += static_cast<char>(random() % 3 == 0 ? random() : 32 + random() % 90);
    const Ids ids = text.source->encode(line);
    for (int32_t id : ids) {
      EXPECT_GE(id, kUnknownId);
      EXPECT_LT(id, text.source->vocabulary().size());
    }
    EXPECT_EQ(find_invalid_utf8(text.source->decode(ids)), std::string::npos);
  }
  const std::string long_line(20'000, 'x');
  EXPECT_FALSE(text.source->encode(long_line).empty());
}

constexpr auto kSubwords = {Subword::kNone, Subword::kBpe, Subword::kSentencePiece};
constexpr auto kUnits = {Subword::kCharacters, Subword::kBytes};

INSTANTIATE_TEST_SUITE_P(
    Kinds, TextPipelineTest, ::testing::Combine(::testing::ValuesIn(kSubwords), ::testing::Bool()));
INSTANTIATE_TEST_SUITE_P(
    Units, TextPipelineTest, ::testing::Combine(::testing::ValuesIn(kUnits), ::testing::Bool()));
INSTANTIATE_TEST_SUITE_P(
    Kinds, SubwordTextTest, ::testing::Combine(::testing::ValuesIn(kSubwords), ::testing::Bool()));

TEST_F(TextTest, WithoutSubwordsSymbolsAreTheWords) {
  const TranslationText text = create(options(Subword::kNone, false));
  EXPECT_THAT(
      text.source->segment("  Ein\tHund\xC2\xA0läuft\r"), ElementsAre("Ein", "Hund", "läuft"));
  EXPECT_EQ(text.source->encode("Hund ."), (Ids{6, 4}));  // 3 "."; 2 "Ein"
  EXPECT_THAT(text.source->symbols({6, 4, 2}), ElementsAre("Hund", ".", "</s>"));
}

TEST_F(TextTest, BpePiecesCarryTheJoiner) {
  const auto codes = folder_.write("codes", "#version: 0.2\nH u\nn d</w>\n");
  TextOptions o = options(Subword::kBpe, true);
  o.bpe_codes = codes;
  const TranslationText text = create(o);
  EXPECT_THAT(
      text.source->segment("Hund runs"), ElementsAre("Hu@@", "nd", "r@@", "u@@", "n@@", "s"));
  EXPECT_EQ(text.save(folder_.path() / "m")["source"]["model"], "bpe.codes");
  EXPECT_EQ(read_file(folder_.path() / "m" / "bpe.codes"), read_file(codes));
}

TEST_F(TextTest, GivenSentencePieceModelsServeBothSides) {
  SentencePieceTraining training;
  training.size = 40;
  const std::string bytes = train_sentencepiece({source_, target_}, training);
  TextOptions o = options(Subword::kSentencePiece, false);
  o.sentencepiece_model = folder_.write("spm.model", bytes);
  const TranslationText text = create(o);
  EXPECT_EQ(text.source->segmenter().model(), bytes);
  EXPECT_EQ(text.target->segmenter().model(), bytes);
}

TEST_F(TextTest, SentencePieceTrainingIsDeterministic) {
  for (auto kind : {SentencePieceKind::kUnigram, SentencePieceKind::kBpe}) {
    SentencePieceTraining training;
    training.size = 40;
    training.kind = kind;
    const std::string model = train_sentencepiece({source_, target_}, training);
    EXPECT_EQ(train_sentencepiece({source_, target_}, training), model);
  }
}

TEST_F(TextTest, SentencePieceGivesASmallerModelForPoorTextAndSaysSo) {
  set_log_level(LogLevel::kInfo);
  SentencePieceTraining training;
  training.size = 5000;
  ::testing::internal::CaptureStderr();
  const std::string model = train_sentencepiece({source_}, training);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(
      log,
      ::testing::MatchesRegex("warning: the training text gives only [0-9]+ SentencePiece pieces, "
                              "not text.subword_size = 5000\n"));
}

TEST_F(TextTest, SentencePieceErrorsAreClear) {
  SentencePieceTraining training;
  training.size = 3;
  EXPECT_THAT(
      error_of([&] { train_sentencepiece({source_}, training); }),
      ::testing::AllOf(
          HasSubstr("cannot train 3 pieces (text.subword_size)"),
          HasSubstr("smaller than required_chars")));
  for (const char* content : {"", "\n\n", " \n\t\n", "▁ ▁\n", "\xE2\x80\x8B\n"}) {
    const std::string empty = folder_.write("empty", content);
    EXPECT_EQ(
        error_of([&] { train_sentencepiece({empty}, training); }),
        "SentencePiece needs text to train on, but found no letter, digit or sign in '" + empty +
            "'");
  }
  EXPECT_THAT(
      error_of([] { make_sentencepiece_segmenter("no model", "x.model"); }),
      HasSubstr("x.model: a SentencePiece model was wanted, but: "));
  EXPECT_THAT(
      error_of([] { make_sentencepiece_segmenter("", "x.model"); }),
      HasSubstr("x.model: a SentencePiece model was wanted"));
  // The library throws an exception at a piece that begins with NUL.
  using namespace std::string_literals;
  EXPECT_EQ(
      error_of([] {
        make_sentencepiece_segmenter(
            "\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02"
            "\x0A\x09\x0A\x02\0w\x15\0\0\x80\xC0"s,
            "x.model");
      }),
      "x.model: a SentencePiece model was wanted, but: its pieces cannot be read");
}

TEST_F(TextTest, DamagedSentencePieceModelsNeverCrash) {
  SentencePieceTraining training;
  training.size = 40;
  const std::string model = train_sentencepiece({source_}, training);
  std::mt19937 random(13);
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string damaged = model.substr(0, random() % model.size());
    std::shared_ptr<const Segmenter> segmenter;
    try {
      segmenter = make_sentencepiece_segmenter(damaged, "damaged");
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith("damaged: "));
      ++refused;
      continue;
    }
    // What opens, cut between two pieces, splits like any other.
    EXPECT_EQ(segmenter->join(segmenter->split("Ein Hund")), "Ein Hund");
  }
  EXPECT_GT(refused, 30);
}

TEST_F(TextTest, LongLinesTrainSentencePieceToo) {
  std::string line;
  for (int i = 0; i < 20'000; ++i)
    line += i % 7 == 0 ? "ab cd " : "漢字";
  const std::string file = folder_.write("long", line);
  SentencePieceTraining training;
  training.size = 20;
  const auto segmenter =
      make_sentencepiece_segmenter(train_sentencepiece({file}, training), "model");
  EXPECT_EQ(segmenter->join(segmenter->split("ab cd 漢字")), "ab cd 漢字");
}

TEST_F(TextTest, OneGivenDictionaryServesBothSidesOfAJoinedVocabulary) {
  const std::string dictionary = folder_.write("dict.txt", "Hund 3\ndog 2\n");
  TextOptions o = options(Subword::kNone, true);
  o.target_dictionary = dictionary;
  const TranslationText text = create(o);
  EXPECT_EQ(text.source->encode("dog Hund Ein"), (Ids{5, 4, 3}));
  EXPECT_EQ(text.source->vocabulary().to_text(), "Hund 3\ndog 2\n");

  o.source_dictionary = folder_.write("other.txt", "dog 2\nHund 3\n");
  EXPECT_THAT(
      error_of<UsageError>([&] { create(o); }),
      ::testing::AllOf(
          HasSubstr("text.joined = true needs one dictionary"),
          HasSubstr("text.source_dictionary"),
          HasSubstr("text.target_dictionary")));
  o.joined = false;
  EXPECT_EQ(create(o).source->encode("dog Hund"), (Ids{4, 5}));
}

TEST_F(TextTest, ContradictionsNameBothKeys) {
  TextOptions o;
  o.bpe_codes = "codes";
  EXPECT_EQ(
      error_of<UsageError>([&] { create(o); }),
      "text.bpe_codes needs text.subword = 'bpe', but that is 'sentencepiece'");
  o = TextOptions();
  o.subword = Subword::kBpe;
  o.sentencepiece_model = "model";
  EXPECT_EQ(
      error_of<UsageError>([&] { o.validate("a.text"); }),
      "a.text.sentencepiece_model needs a.text.subword = 'sentencepiece', but that is 'bpe'");
  o = TextOptions();
  o.source_dictionary = "dict.txt";
  o.min_count = 2;
  EXPECT_EQ(
      error_of<UsageError>([&] { o.validate(); }),
      "text.min_count has no effect with text.source_dictionary: the dictionary is taken as it is");
  o.joined = false;
  EXPECT_NO_THROW(o.validate());
  o.dictionary = "lm.txt";
  EXPECT_EQ(
      error_of<UsageError>([&] { create(o); }),
      "text.dictionary = 'lm.txt' is for language models, but this is a translation model, whose "
      "dictionaries are text.source_dictionary and text.target_dictionary");
}

TEST_F(TextTest, ValuesOutOfRangeAreUsageErrors) {
  const auto message = [](auto set) {
    TextOptions o;
    set(o);
    return error_of<UsageError>([&] { o.validate(); });
  };
  EXPECT_EQ(
      message([](TextOptions& o) { o.subword_size = 0; }),
      "text.subword_size must be from 1 to 1000000, but got 0");
  EXPECT_EQ(
      message([](TextOptions& o) { o.character_coverage = 0.5; }),
      "text.character_coverage must be from 0.98 to 1, but got 0.5");
  EXPECT_EQ(
      message([](TextOptions& o) { o.min_count = 0; }), "text.min_count must be >= 1, but got 0");
  EXPECT_EQ(
      message([](TextOptions& o) { o.max_vocabulary = 4; }),
      "text.max_vocabulary must be 0 (no limit) or > 4, as four symbols are special, but got 4");
}

TEST_F(TextTest, BadTrainingTextIsAnErrorWithFileAndLine) {
  const std::string bad = folder_.write("bad", "fine\n\xC3(\n");
  for (auto subword : {Subword::kNone, Subword::kBpe, Subword::kSentencePiece}) {
    EXPECT_THAT(
        error_of([&] { TranslationText::create(options(subword, true), {source_}, {bad}); }),
        HasSubstr(bad + ":2: UTF-8 was wanted, but byte 1"));
    const std::string empty = folder_.write("empty", "\n \n");
    EXPECT_THAT(
        error_of([&] { TranslationText::create(options(subword, false), {empty}, {target_}); }),
        HasSubstr(empty));
  }
  EXPECT_EQ(
      error_of([&] { TranslationText::create(options(Subword::kNone, true), {}, {target_}); }),
      "text needs training files for both sides, but got 0 source and 1 target files");
}

TEST_F(TextTest, ManyTrainingFilesCountTogether) {
  const TranslationText text =
      TranslationText::create(options(Subword::kNone, false), {source_, source_}, {target_});
  EXPECT_THAT(text.source->vocabulary().to_text(), HasSubstr("Hund 4\n"));
  EXPECT_THAT(text.target->vocabulary().to_text(), HasSubstr("dog 2\n"));
}

TEST_F(TextTest, FilesOfAModelMustBeInItsFolder) {
  const auto model = folder_.path() / "model";
  const Json json = create(options(Subword::kNone, true)).save(model);
  folder_.write("dict.txt", read_file(model / "dict.txt"));
  for (const std::string& name :
       {std::string("../dict.txt"),
        std::string("a/../../dict.txt"),
        (model / "dict.txt").string(),
        std::string("")}) {
    Json changed = json;
    changed["source"]["dictionary"] = name;
    EXPECT_THAT(
        error_of([&] { TranslationText::load(model, changed); }),
        HasSubstr(
            "text dictionary must name a file inside the model folder, but got '" + name + "'"));
  }
}

TEST_F(TextTest, ADamagedModelFolderIsAnError) {
  const auto model = folder_.path() / "model";
  const Json json = create(options(Subword::kBpe, true)).save(model);
  const auto message = [&](const Json& text) {
    return error_of([&] { TranslationText::load(model, text); });
  };
  for (const char* key : {"subword", "lowercase", "joined", "source", "target"})
    for (const Json& value : {Json(), Json(7), Json("x"), Json::array()}) {
      Json changed = json;
      changed[key] = value;
      EXPECT_FALSE(message(changed).empty());
      changed.erase(key);
      EXPECT_THAT(message(changed), HasSubstr("is malformed"));
    }
  for (const char* key : {"dictionary", "model", "samples"}) {
    Json changed = json;
    changed["target"][key] = 7;
    EXPECT_FALSE(message(changed).empty());
    changed["target"].erase(key);
    EXPECT_FALSE(message(changed).empty());
  }
  EXPECT_FALSE(message(Json::array()).empty());
  std::filesystem::remove(model / "bpe.codes");
  EXPECT_THAT(message(json), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace seqconv::internal
