#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "text/language_text.h"
#include "text/learning/sentencepiece_trainer.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

/// Pieces that the vocabulary lacks: split again, into characters, into bytes.
namespace seqconv::internal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr const char* kText = "zehn neun drei\nzehn acht zehn zwei\neins acht fünf neun vier vier\n"
                              "sieben sechs eins zwei\nsieben zehn eins\nneun sechs\n";

class FallbackTest : public ::testing::Test {
 protected:
  FallbackTest() {
    set_log_level(LogLevel::kError);
    file_ = folder_.write("train", kText);
  }
  ~FallbackTest() override { set_log_level(LogLevel::kInfo); }

  static TextOptions bpe(int64_t size = 25) {
    return {.subword = Subword::kBpe, .subword_size = size};
  }
  /// Options for a SentencePiece model that has bytes and `symbols`.
  TextOptions sentencepiece(
      const std::vector<std::string>& symbols = {},
      SentencePieceKind kind = SentencePieceKind::kUnigram) const {
    return {
        .subword = Subword::kSentencePiece,
        .subword_size = 320,
        .sentencepiece_kind = kind,
        .sentencepiece_byte_fallback = true,
        .sentencepiece_user_symbols = symbols};
  }
  LanguageText create(const TextOptions& options) const {
    return LanguageText::create(options, {file_});
  }
  /// What a line comes back as; no id of it may be <unk>.
  static std::string there_and_back(const TextPipeline& text, const std::string& line) {
    const Ids ids = text.encode(line);
    EXPECT_THAT(ids, Not(Contains(kUnknownId))) << line;
    return text.decode(ids);
  }

  TemporaryFolder folder_;
  std::string file_;
};

TEST_F(FallbackTest, BpeWordsOfKnownLettersAreNeverUnknown) {
  const LanguageText text = create(bpe());
  for (const char* word : {"ein", "nie", "zehnzwei", "f", "hcsüfrv"}) {
    EXPECT_EQ(there_and_back(*text.text, word), word);
    EXPECT_NO_THROW(check_known(text, word, text.text->encode(word), ""));
  }
  EXPECT_THAT(text.text->encode("einx"), Contains(kUnknownId));
}

TEST_F(FallbackTest, BpePiecesAreSplitIntoOnesOfTheVocabulary) {
  TextOptions options = bpe(30);
  options.bpe_codes = folder_.write("codes", "#version: 0.2\nl o\nlo w</w>\n");
  options.source_dictionary = folder_.write("dict", "lo@@ 9\nw 2\n");
  const auto text = TranslationText::create(options, {file_}, {file_});
  EXPECT_THAT(text.source->segment("low"), ElementsAre("lo@@", "w"));
  EXPECT_EQ(text.source->encode("low"), (Ids{4, 5}));
}

TEST_F(FallbackTest, RarePiecesAreSplitAgainAndCountedSo) {
  TextOptions options = bpe(40);
  options.min_count = 2;
  const LanguageText text = create(options);
  EXPECT_THAT(text.text->segment("drei"), ElementsAre("d@@", "r@@", "e@@", "i"));
  EXPECT_TRUE(text.knows_unknown) << "d comes once";
  EXPECT_THAT(
      text.text->vocabulary().to_text(),
      ::testing::AllOf(HasSubstr("zehn 4\n"), Not(HasSubstr("drei"))));
}

TEST_F(FallbackTest, WithoutFallbackItIsAsItWas) {
  TextOptions options = bpe();
  options.subword_fallback = false;
  const LanguageText text = create(options);
  EXPECT_THAT(text.text->encode("ein"), (Ids{3, 3, 3}));
  EXPECT_THAT(text.text->vocabulary().to_text(), Not(HasSubstr("e@@ ")));
  const Json json = text.save(folder_.path() / "model");
  EXPECT_FALSE(json.contains("subword_fallback"));
}

TEST_F(FallbackTest, TheFolderSaysWhetherItFallsBack) {
  for (const TextOptions& options : {bpe(), sentencepiece()}) {
    const LanguageText text = create(options);
    const auto model = folder_.path() / "model";
    Json json = text.save(model);
    EXPECT_EQ(json["subword_fallback"], true);
    const LanguageText loaded = LanguageText::load(model, json);
    for (const char* line : {"ein", "zehnzwei", "日本"})
      EXPECT_EQ(loaded.text->encode(line), text.text->encode(line));
    json.erase("subword_fallback");
    EXPECT_FALSE(LanguageText::load(model, json).options.subword_fallback);
    json["subword_fallback"] = "yes";
    EXPECT_THAT(error_of([&] { LanguageText::load(model, json); }), HasSubstr("is malformed"));
  }
}

TEST_F(FallbackTest, BothSidesOfATranslationFallBack) {
  TextOptions options = bpe();
  for (const bool joined : {true, false}) {
    options.joined = joined;
    const auto text = TranslationText::create(options, {file_}, {file_});
    EXPECT_EQ(there_and_back(*text.source, "ein nie"), "ein nie");
    EXPECT_EQ(there_and_back(*text.target, "ein nie"), "ein nie");
  }
}

TEST_F(FallbackTest, AWordUnkStaysUnknown) {
  TextOptions options = bpe(60);
  const auto file = folder_.write("unk", "a <unk> b <unk>\n<unk> <unk> ab\n");
  const auto text = LanguageText::create(options, {file});
  EXPECT_EQ(text.text->encode("<unk>"), (Ids{kUnknownId}));
  EXPECT_TRUE(text.knows_unknown);
}

TEST_F(FallbackTest, SentencePieceBytesAreAllThere) {
  for (const auto kind : {SentencePieceKind::kUnigram, SentencePieceKind::kBpe}) {
    const LanguageText text = create(sentencepiece({}, kind));
    for (const std::string& byte : byte_symbols())
      EXPECT_TRUE(text.text->vocabulary().has(byte)) << byte;
    EXPECT_FALSE(text.knows_unknown);
    for (const char* line : {"日本", "eins 日本 zwei", "😀é", "ein nie", "<0x41>", "x"})
      EXPECT_EQ(there_and_back(*text.text, line), line);
  }
}

TEST_F(FallbackTest, LimitsLeaveNoByteOut) {
  TextOptions options = sentencepiece({"<2de>"});
  options.min_count = 3;
  options.max_vocabulary = 280;
  const LanguageText text = create(options);
  EXPECT_EQ(text.text->vocabulary().size(), 280);
  for (const char* line : {"日本 drei", "<2de>zehn"})
    EXPECT_EQ(there_and_back(*text.text, line), line);
  options.max_vocabulary = 100;
  EXPECT_EQ(
      error_of<UsageError>([&] { create(options); }),
      "text.max_vocabulary must be >= 262 for the bytes and user-defined symbols of the "
      "SentencePiece model, but got 100");
}

TEST_F(FallbackTest, BytesThatAreNoCharacterReadAsTheReplacement) {
  const LanguageText text = create(sentencepiece());
  const Vocabulary& vocabulary = text.text->vocabulary();
  const auto decode = [&](const std::vector<std::string>& symbols) {
    Ids ids;
    for (const std::string& symbol : symbols)
      ids.push_back(vocabulary.id(symbol));
    return text.text->decode(ids);
  };
  EXPECT_EQ(decode({"<0xC3>", "<0xA9>"}), "é");
  EXPECT_EQ(decode({"<0xC3>", "▁", "<0xFF>"}), "\uFFFD \uFFFD");
}

TEST_F(FallbackTest, UserSymbolsAreOnePieceWhetherTheTextHasThemOrNot) {
  const std::vector<std::string> symbols = {"<2de>", "a,\"b", "€"};
  for (const auto kind : {SentencePieceKind::kUnigram, SentencePieceKind::kBpe}) {
    const LanguageText text = create(sentencepiece(symbols, kind));
    for (const std::string& symbol : symbols) {
      EXPECT_TRUE(text.text->vocabulary().has(symbol)) << symbol;
      EXPECT_THAT(text.text->segment("zehn" + symbol), Contains(symbol));
    }
  }
}

TEST_F(FallbackTest, PiecesOfAGivenModelFallBackToBytes) {
  // The model knows characters and pieces that the training text lacks.
  SentencePieceTraining training{.size = 340, .byte_fallback = true};
  const auto other = folder_.write("other", "日本語 日本 quux quux\n" + std::string(kText));
  TextOptions options = sentencepiece();
  options.sentencepiece_byte_fallback = false;
  options.sentencepiece_model = folder_.write("model", train_sentencepiece({other}, training));
  const LanguageText text = create(options);
  for (const char* line : {"日本 quux", "quux日本語", "語"})
    EXPECT_EQ(there_and_back(*text.text, line), line);
}

TEST_F(FallbackTest, WishesForSentencePieceThatCannotBeAreUsageErrors) {
  const auto message = [&](auto set) {
    TextOptions options = sentencepiece();
    set(options);
    return error_of<UsageError>([&] { create(options); });
  };
  EXPECT_EQ(
      message([](TextOptions& o) { o.subword = Subword::kBytes; }),
      "text.sentencepiece_byte_fallback needs text.subword = 'sentencepiece', but that is 'bytes'");
  EXPECT_EQ(
      message([](TextOptions& o) { o.sentencepiece_model = "a.model"; }),
      "text.sentencepiece_byte_fallback is for a model that is trained, but "
      "text.sentencepiece_model = 'a.model' is taken as it is");
  for (const char* symbol : {"", "a b", "a\tb"})
    EXPECT_EQ(
        message([&](auto& o) { o.sentencepiece_user_symbols = {symbol}; }),
        "text.sentencepiece_user_symbols must be text without blanks, but got '" +
            std::string(symbol) + "'");
  for (const char* symbol : {"<unk>", "</s>", "<0x0A>"})
    EXPECT_EQ(
        message([&](auto& o) { o.sentencepiece_user_symbols = {symbol}; }),
        "text.sentencepiece_user_symbols must be symbols that are not there yet, but got '" +
            std::string(symbol) + "'");
  EXPECT_EQ(
      message([](TextOptions& o) {
        o.sentencepiece_user_symbols = {"<DE>"};
        o.lowercase = true;
      }),
      "text.sentencepiece_user_symbols has '<DE>', which text.lowercase or text.tokenizer makes "
      "'<de>' of before SentencePiece sees it");
}

}  // namespace
}  // namespace seqconv::internal
