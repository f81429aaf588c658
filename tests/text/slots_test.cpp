#include "text/slots.h"

#include <gmock/gmock.h>

#include <map>

#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/made_up_pieces.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "text/language_text.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"
#include "text/text_side.h"

/// Protected pieces as slots, there and back, for every way to split text.
namespace seqconv::internal {
namespace {

using testing::all_piece_kinds;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeUpPieces;
using ::testing::Not;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr const char* kLines = "zehn neun drei ( { } ) , .\nzehn acht zehn zwei \" \" \",\n"
                               "eins acht fünf neun vier vier (zwei), (eins). \",\n"
                               "sieben sechs eins zwei ( ) . \".\nsieben zehn eins\nneun sechs\n";

class SlotsTest : public ::testing::Test {
 protected:
  SlotsTest() {
    set_log_level(LogLevel::kError);
    file_ = folder_.write("train", kLines);
  }
  ~SlotsTest() override { set_log_level(LogLevel::kInfo); }

  TranslationText create(TextOptions options, PieceKinds kinds = all_piece_kinds()) const {
    options.protect = std::move(kinds);
    return TranslationText::create(options, {file_}, {file_});
  }
  LanguageText create_language(TextOptions options) const {
    options.protect = all_piece_kinds();
    return LanguageText::create(options, {file_});
  }
  static TextOptions options(Subword subword, int64_t size = 40) {
    return {.subword = subword, .subword_size = size};
  }
  static TextOptions moses(TextOptions options) {
    options.tokenizer = Tokenizer::kMoses;
    options.source_language = "de";
    options.target_language = "en";
    return options;
  }
  static std::vector<TextOptions> all_options() {
    std::vector<TextOptions> all;
    for (const Subword subword :
         {Subword::kNone,
          Subword::kBpe,
          Subword::kSentencePiece,
          Subword::kCharacters,
          Subword::kBytes}) {
      all.push_back(options(subword));
      all.push_back(options(subword));
      all.back().joined = false;
      all.back().lowercase = true;
      all.push_back(options(subword));
      all.back().subword_fallback = false;
      if (subword != Subword::kCharacters && subword != Subword::kBytes)
        all.push_back(moses(options(subword)));
    }
    return all;
  }
  static std::string there_and_back(const TextPipeline& text, const std::string& line) {
    const Ids ids = text.encode(line);
    EXPECT_THAT(ids, Not(Contains(kUnknownId))) << line;
    return text.decode(ids, text.slots_of(line));
  }

  TemporaryFolder folder_;
  std::string file_;
};

TEST_F(SlotsTest, ComeBackAsTheyWentInHoweverTextIsSplit) {
  MadeUpPieces made(3);
  const std::vector<std::string> words = {"zehn", "neun", "drei", "sieben", "eins"};
  for (const TextOptions& options : all_options()) {
    const TranslationText text = create(options);
    for (int round = 0; round < testing::rounds(200); ++round) {
      const std::string line = made.line(words, 1 + round % 6);
      const Slots slots = text.source->slots_of(line);
      if (find_pieces(line, all_piece_kinds()).size() > kSlots)
        continue;
      EXPECT_EQ(text.source->decode(text.source->encode(line), slots), line)
          << enum_name(options.subword);
      EXPECT_EQ(text.target->decode(text.target->encode(line, slots), slots), line);
    }
  }
}

TEST_F(SlotsTest, AreSymbolsOfTheirOwn) {
  const TranslationText text = create(options(Subword::kBpe));
  EXPECT_THAT(
      text.source->segment("zehn ({name}), {0} {name}"),
      ElementsAre(
          "zehn",
          "(",
          "<slot:join>",
          "<slot:1>",
          "<slot:join>",
          ")@@",
          ",",
          "<slot:2>",
          "<slot:1>"));
  EXPECT_THAT(
      text.source->segment("{a}{b} {c}"),
      ElementsAre("<slot:1>", "<slot:join>", "<slot:2>", "<slot:3>"));
  EXPECT_THAT(
      create(options(Subword::kCharacters)).source->segment("a {b}"),
      ElementsAre("a", "\u2581", "<slot:1>"));
}

TEST_F(SlotsTest, AreNeverSpelledByText) {
  for (const Subword subword : {Subword::kNone, Subword::kBpe}) {
    const TranslationText text = create(options(subword), {PieceKind::kPlaceholders});
    const Ids& slots = text.source->vocabulary().slots();
    ASSERT_EQ(slots.size(), kSlots + 1);
    for (const std::string& symbol : slot_symbols())
      for (const int32_t id : text.source->encode(symbol))
        EXPECT_THAT(slots, Not(Contains(id)));
    EXPECT_EQ(text.source->vocabulary().text_id("<slot:2>"), kUnknownId);
    EXPECT_EQ(text.source->vocabulary().token_id("<slot:2>"), slots[1]);
    // Nor do the code points that stand for them within.
    EXPECT_THAT(text.source->encode("zehn \uFDD1 \uFDD9"), Not(Contains(slots[0])));
  }
}

TEST_F(SlotsTest, OfAnotherSentenceCarryItsPiecesAlone) {
  const TranslationText text = create(options(Subword::kBpe));
  const Slots slots = text.source->slots_of("{a} zehn {b}");
  const Ids ids = text.target->encode("neun {b} {c} {a}", slots);
  EXPECT_EQ(ids.front(), text.target->vocabulary().id("neun"));
  EXPECT_THAT(ids, Contains(text.target->vocabulary().slots()[1]));
  EXPECT_EQ(ids.back(), text.target->vocabulary().slots()[0]);
  EXPECT_EQ(std::ranges::count(ids, text.target->vocabulary().slots()[2]), 0);
  EXPECT_EQ(text.target->decode({text.target->vocabulary().slots()[2]}, slots), "<slot:3>");
}

TEST_F(SlotsTest, OfSpellingsBeyondTheLastAreText) {
  const TranslationText text = create(options(Subword::kBytes));
  std::string line;
  for (int i = 0; i < 12; ++i)
    line += (i > 0 ? " {" : "{") + std::to_string(i) + "}";
  const Ids ids = text.source->encode(line);
  for (size_t slot = 0; slot < kSlots; ++slot)
    EXPECT_EQ(std::ranges::count(ids, text.source->vocabulary().slots()[slot]), 1);
  EXPECT_EQ(there_and_back(*text.source, line), line);
}

TEST_F(SlotsTest, HaveTheirSpellingsBytesAsRanges) {
  const TranslationText text = create(options(Subword::kBpe));
  const std::string line = "zehn (%1$s), http://A.org/B neun";
  const auto symbols = text.source->segment(line);
  const auto ranges = text.source->find_ranges(line, symbols, text.source->slots_of(line));
  for (size_t i = 0; i < symbols.size(); ++i) {
    const auto begin = static_cast<size_t>(ranges[i].begin);
    const std::string part = line.substr(begin, static_cast<size_t>(ranges[i].end) - begin);
    const std::map<std::string, std::string> wanted = {
        {"<slot:1>", "%1$s"}, {"<slot:2>", "http://A.org/B"}, {"<slot:join>", ""}};
    if (const auto found = wanted.find(symbols[i]); found != wanted.end()) {
      EXPECT_EQ(part, found->second);
    }
  }
}

TEST_F(SlotsTest, StayInTheModelFolder) {
  for (const TextOptions& wanted : all_options()) {
    const TranslationText text = create(wanted);
    const std::string line = "zehn {name} und %d";
    const Json json = text.save(folder_.path() / "model");
    EXPECT_EQ(json["protect"], Json({"placeholders", "urls", "emails", "numbers"}));
    const TranslationText loaded = TranslationText::load(folder_.path() / "model", json);
    EXPECT_EQ(loaded.source->encode(line), text.source->encode(line));
    EXPECT_EQ(difference(text, loaded), "");
  }
  TranslationText plain = TranslationText::create(options(Subword::kBpe), {file_}, {file_});
  EXPECT_FALSE(plain.save(folder_.path() / "plain").contains("protect"));
  EXPECT_EQ(difference(plain, create(options(Subword::kBpe))), "protect");
}

TEST_F(SlotsTest, OfALanguageModelAreThoseOfItsLines) {
  const LanguageText text = create_language(options(Subword::kBpe));
  EXPECT_FALSE(text.knows_unknown);
  EXPECT_EQ(there_and_back(*text.text, "zehn {name} drei (%d)."), "zehn {name} drei (%d).");
  const std::string line = "zehn {x} \u4e2d";
  EXPECT_THAT(
      error_of([&] { check_known(text, line, text.text->encode(line), ""); }),
      HasSubstr("'\u4e2d'"));
}

TEST_F(SlotsTest, AreAddedToAGivenDictionary) {
  TextOptions given = options(Subword::kNone);
  given.source_dictionary = folder_.write("dict", "zehn 9\nneun 2\n");
  const TranslationText text = create(given);
  EXPECT_EQ(text.source->encode("neun {a} zehn"), (Ids{5, 6, 4}));
  EXPECT_EQ(text.source->vocabulary().size(), 6 + std::ssize(slot_symbols()));
  // A second time they are there.
  const Json json = text.save(folder_.path() / "model");
  given.source_dictionary = (folder_.path() / "model/dict.txt").string();
  EXPECT_EQ(create(given).source->vocabulary().symbols(), text.source->vocabulary().symbols());
}

TEST_F(SlotsTest, AreMissedInAFolderWithoutThem) {
  const TranslationText text = create(options(Subword::kNone));
  const Json json = text.save(folder_.path() / "model");
  folder_.write("model/dict.txt", "zehn 9\nneun 2\n");
  EXPECT_THAT(
      error_of([&] { TranslationText::load(folder_.path() / "model", json); }),
      HasSubstr("'<slot:1>' is missing"));
}

TEST_F(SlotsTest, AreKeptWhateverTheLimitsOfAVocabulary) {
  TextOptions wanted = options(Subword::kNone);
  wanted.max_vocabulary = 16;
  EXPECT_EQ(create(wanted).source->vocabulary().size(), 16);
  wanted.max_vocabulary = 10;
  EXPECT_THAT(error_of([&] { create(wanted); }), HasSubstr("slots of protected pieces"));
}

TEST_F(SlotsTest, OfOneKindTwiceAreAnError) {
  TextOptions wanted;
  wanted.protect = {PieceKind::kUrls, PieceKind::kUrls};
  EXPECT_THAT(error_of([&] { wanted.validate(); }), HasSubstr("'urls' comes twice"));
}

}  // namespace
}  // namespace seqconv::internal
