#include "pipeline/piece_check.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "base/log.h"
#include "piece_counts.h"
#include "pipeline/scorer.h"
#include "pipeline/shortlist.h"
#include "pipeline/translator.h"
#include "support/made_up_pieces.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"
#include "table_backend.h"

// Protected pieces of translations: kept, put right or told, whatever a model says.
namespace seqconv::internal {
namespace {

using testing::all_piece_kinds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeUpPieces;
using ::testing::SizeIs;

constexpr const char* kNumbers = "eins zwei drei vier ( ) \" .\neins ( zwei ) drei , vier .\n";

/// Looks at nothing, or lets translations be longer than the tables of other tests.
class LongTranslation : public testing::TableTranslation {
 public:
  explicit LongTranslation(int64_t vocabulary)
      : TableTranslation(vocabulary, testing::FailingWords{}, 0) {}
  PositionLimits limits() const override { return {0, 0}; }
};

class PieceCheckTest : public ::testing::Test {
 protected:
  PieceCheckTest() { set_log_level(LogLevel::kError); }
  ~PieceCheckTest() override { set_log_level(LogLevel::kInfo); }

  TranslationText make_text(TextOptions options, PieceKinds kinds = all_piece_kinds()) {
    options.protect = std::move(kinds);
    const std::string file = folder_.write("train", kNumbers);
    return TranslationText::create(options, {file}, {file});
  }
  static TranslationSystem system(const TranslationText& text) {
    TranslationSystem system;
    system.text = text;
    system.backend = std::make_shared<LongTranslation>(text.target->vocabulary().size());
    return system;
  }

  /// A translation of these words and slots, "1" for the first, that looked at the source token of
  /// its own place.
  std::string repair(
      const std::string& source, const std::vector<std::string>& tokens, bool needs_all = true) {
    const TranslationText text = make_text({.subword = Subword::kNone});
    const Slots slots = text.source->slots_of(source);
    const std::vector<int32_t> ids = text.source->encode(source, slots);
    std::vector<int32_t> target;
    for (const std::string& token : tokens)
      target.push_back(text.target->vocabulary().token_id(
          token.size() == 1 && token[0] >= '1' ? "<slot:" + token + ">"
              : token == "+"                   ? "<slot:join>"
                                               : token));
    notes_.clear();
    return PieceCheck(
               *text.source,
               *text.target,
               {.text = source, .ids = ids, .needs_all = needs_all},
               slots)
        .repair(
            target,
            [&] { return system(text).backend->source_shares(ids, {target}).front(); },
            notes_);
  }

  testing::TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(PieceCheckTest, LeavesWhatIsRight) {
  EXPECT_EQ(repair("eins {a} zwei %d", {"zwei", "2", "eins", "1"}), "zwei %d eins {a}");
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(PieceCheckTest, PutsMissingPiecesWhereTheWordsBesideThemWent) {
  EXPECT_EQ(repair("eins {a} zwei", {"eins", "drei", "vier"}), "eins {a} drei vier");
  EXPECT_THAT(notes_, ElementsAre("protected piece '{a}' was missing and has been put in"));
  EXPECT_EQ(repair("{a} zwei", {"eins", "drei"}), "eins {a} drei");
  EXPECT_EQ(repair("{a} {b} {a}", {"eins"}), "eins {a} {b} {a}");
  EXPECT_THAT(
      notes_,
      ElementsAre(
          "protected piece '{a}' was missing and has been put in (2 times)",
          "protected piece '{b}' was missing and has been put in"));
  EXPECT_EQ(repair("zwei {a}", {}), "{a}");
}

TEST_F(PieceCheckTest, PutsPiecesBetweenTheirBrackets) {
  EXPECT_EQ(repair("( eins ({a})", {"(", "eins", "(", ")"}), "( eins ({a} )");
  EXPECT_EQ(repair("eins http://a.b", {"eins", "+", "."}), "eins http://a.b.");
}

TEST_F(PieceCheckTest, TakesOutTheLastOfTooMany) {
  EXPECT_EQ(repair("eins {a}", {"1", "eins", "1", "zwei", "1"}), "{a} eins zwei");
  EXPECT_THAT(
      notes_, ElementsAre("protected piece '{a}' came too often and has been taken out (2 times)"));
}

TEST_F(PieceCheckTest, TellsOfNumbersThatComeTooOften) {
  EXPECT_EQ(repair("eins 17", {"1", "eins", "1"}), "17 eins 17");
  EXPECT_THAT(notes_, ElementsAre("protected piece '17' comes more often than in the source"));
}

TEST_F(PieceCheckTest, SetsPiecesApartFromWhatMakesOthersOfThem) {
  EXPECT_EQ(repair("eins 17 a@b.cd", {"1", "+", "2", "+", "zwei"}), "17 a@b.cd zwei");
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(PieceCheckTest, CountsWhatASummaryLeavesOut) {
  EXPECT_EQ(repair("eins {a} {b} {c}", {"eins", "2"}, /*needs_all=*/false), "eins {b}");
  EXPECT_THAT(notes_, ElementsAre("2 of the 3 protected pieces of the source are left out"));
}

/// Translations but for the first have no pieces but the source's, or a note has their numbers.
void expect_others_told(const std::string& source, const TranslationOutcome& result) {
  const auto pieces_of = [](const std::string& text) {
    std::multiset<std::string> pieces;
    for (const ProtectedPiece& piece : find_pieces(text, all_piece_kinds()))
      pieces.emplace(piece.of(text));
    return pieces;
  };
  for (size_t i = 1; i < result.translations.size(); ++i) {
    const bool told = std::ranges::any_of(result.notes, [&](const std::string& note) {
      return note.find("translations number") != std::string::npos;
    });
    EXPECT_TRUE(told || pieces_of(result.translations[i].text) == pieces_of(source)) << source;
  }
}

TEST_F(PieceCheckTest, KeepsOrTellsEveryPieceWhateverTheModelSays) {
  const std::vector<std::string> words = {"eins", "zwei", "drei", "vier"};
  std::map<std::string, int> counts;
  TextOptions moses{
      .tokenizer = Tokenizer::kMoses, .source_language = "de", .target_language = "en"};
  moses.subword = Subword::kNone;
  for (const TextOptions& options :
       {TextOptions{.subword = Subword::kNone},
        TextOptions{.subword = Subword::kBpe, .subword_size = 20},
        TextOptions{.subword = Subword::kCharacters},
        TextOptions{.subword = Subword::kBytes},
        moses}) {
    const Translator translator(
        system(make_text(options)), {.search = {.beam = 2, .n_best = 2, .max_length_b = 12}});
    MadeUpPieces made(11);
    std::vector<TranslationInput> requests;
    for (int round = 0; round < testing::rounds(800); ++round)
      requests.push_back({{.text = made.line(words, round % 8)}});
    const auto results = translator.translate(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].text.empty())
        continue;
      ASSERT_EQ(results[i].status, Status::kOk) << results[i].error;
      testing::expect_kept_or_told(requests[i].text, results[i], counts);
      expect_others_told(requests[i].text, results[i]);
      for (const std::string& symbol : slot_symbols())
        EXPECT_EQ(results[i].translations[0].text.find(symbol), std::string::npos);
    }
  }
  // A model of random tables writes numbers that no source has: these are told.
  EXPECT_GT(counts["kept"], 20 * counts["too often"]);
  EXPECT_GT(counts["kept"], 500 * counts["missing"]);
  for (const auto& [what, count] : counts)
    RecordProperty(what, count);
}

class Doors : public PieceCheckTest {
 protected:
  Doors() : text_(make_text({.subword = Subword::kNone})), system_(system(text_)) {}

  TranslationOutcome translate(const TranslationInput& request) const {
    return Translator(system_, {.search = {.beam = 3, .max_length_b = 8}}).translate({request})[0];
  }

  TranslationText text_;
  TranslationSystem system_;
};

TEST_F(Doors, ShowNoSlotsThatTheSourceLacks) {
  for (const char* const line : {"eins", "eins zwei drei", "vier vier"}) {
    const auto result = translate({{.text = line}});
    for (const std::string& token : result.translations.at(0).tokens)
      EXPECT_FALSE(token.starts_with("<slot:")) << token;
  }
}

TEST_F(Doors, TakePrefixesWithPiecesOfTheSource) {
  const auto result = translate(
      {{.text = "eins {a} zwei", .target_prefix = "drei ({a})", .alignments = Alignments::kPairs}});
  ASSERT_EQ(result.status, Status::kOk) << result.error;
  const Translation& best = result.translations.at(0);
  EXPECT_THAT(best.text, ::testing::StartsWith("drei ({a})"));
  // Tokens: drei ( join slot join )
  const ByteRange slot = best.token_ranges.at(3);
  EXPECT_EQ(best.text.substr(static_cast<size_t>(slot.begin), 3), "{a}");
  EXPECT_EQ(slot.end - slot.begin, 3);
  EXPECT_EQ(result.source_ranges.at(1), (ByteRange{5, 8}));
}

TEST_F(Doors, TakeTokensWithSlots) {
  const auto result =
      translate({{.tokens = std::vector<std::string>{"eins", "<slot:2>", "<slot:1>"}}});
  ASSERT_EQ(result.status, Status::kOk) << result.error;
  EXPECT_EQ(result.symbols.unknown, 0);
}

TEST_F(Doors, StreamTheSpellings) {
  TranslationInput request{{.text = "{a} {b} {c}", .target_prefix = "{a} zwei"}};
  request.streams = true;
  std::vector<std::string> parts;
  TranslationHooks hooks;
  hooks.part = [&](size_t, const std::string& part) { parts.push_back(part); };
  Translator(system_, {.search = {.beam = 2, .max_length_b = 8}}).translate({request}, hooks);
  ASSERT_FALSE(parts.empty());
  EXPECT_THAT(parts, ::testing::Each(::testing::StartsWith("{a}")));
  EXPECT_THAT(parts, ::testing::Each(::testing::Not(HasSubstr("<slot:"))));
}

TEST_F(Doors, ScoreReferencesWithTheSlotsOfTheSource) {
  const auto results = score_requests(
      system_,
      {{"eins {b} {a}", "{a} zwei"}, {"eins {d} {c}", "{c} zwei"}, {"eins {a} {b}", "{a} zwei"}},
      {});
  ASSERT_TRUE(results[0].ok()) << results[0].error;
  EXPECT_EQ(results[0].log_probability, results[1].log_probability);
  EXPECT_NE(results[0].log_probability, results[2].log_probability);
}

TEST_F(Doors, LookForPiecesUpToTheCutOfASource) {
  system_.text.max_source_tokens = 3;
  const auto result = translate({{.text = "eins {a} zwei {b}"}});
  EXPECT_THAT(result.translations.at(0).text, HasSubstr("{a}"));
  EXPECT_EQ(result.translations.at(0).text.find("{b}"), std::string::npos);
}

TEST_F(Doors, PutNothingIntoSummaries) {
  system_.documents.format = TextFormat::kJson;
  const std::string document = "{a} {b} {c} {d} {e} {f} {g} {h} {i} {j} {k} {l}";
  const auto result = translate({{.text = document}});
  const auto there = find_pieces(result.translations.at(0).text, all_piece_kinds()).size();
  EXPECT_LT(there, 12U);
  EXPECT_THAT(
      result.notes,
      ::testing::Contains(
          concat(12 - there, " of the 12 protected pieces of the source are left out")));
}

TEST_F(Doors, WorkAlikeAlone) {
  MadeUpPieces made(5);
  std::vector<TranslationInput> requests;
  for (int i = 0; i < 20; ++i)
    requests.push_back({{.text = made.line({"eins", "zwei"}, i % 5)}});
  for (const int64_t workers : {1, 3}) {
    const Translator translator(
        system_, {.search = {.beam = 2, .max_length_b = 6}, .workers = workers});
    const auto all = translator.translate(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto alone = translator.translate({requests[i]});
      EXPECT_EQ(all[i].translations.at(0).text, alone[0].translations.at(0).text);
      EXPECT_EQ(all[i].notes, alone[0].notes);
    }
  }
}

}  // namespace
}  // namespace seqconv::internal
