#include "pipeline/shortlist.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "pipeline/translator.h"
#include "shortlist_fixture.h"
#include "support/errors.h"
#include "table_backend.h"

// Which words a translation may hold: learned, and told to what runs the model.
namespace seqconv::internal {
namespace {

using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::ShortlistTest;
using testing::TableTranslation;

using Ids = std::vector<int32_t>;

TEST_F(ShortlistTest, ListsTranslationsEndAndUnknown) {
  const Shortlist found = learn({.per_word = 1, .common = 0, .iterations = 30});
  using Words = std::set<std::string>;
  EXPECT_EQ(listed(found, "das buch"), (Words{"</s>", "<unk>", "the", "book"}));
  EXPECT_EQ(listed(found, "ein"), (Words{"</s>", "<unk>", "a"}));
  EXPECT_EQ(listed(found, ""), (Words{"</s>", "<unk>"}));
  EXPECT_EQ(listed(found, "unbekannt"), (Words{"</s>", "<unk>"}));
}

TEST_F(ShortlistTest, ListsWordsOfTheSameSpelling) {
  // It came once, with "vienna" too, which is as likely and comes first.
  const Shortlist found = learn({.per_word = 1, .common = 0});
  EXPECT_THAT(listed(found, "42"), Contains("42"));
  EXPECT_THAT(listed(found, "wien"), Not(Contains("wien")));
  // Whether it ever came or not.
  const TranslationText joined = make_text(/*joined=*/true, "neu\n");
  ShortlistReport report;
  const Shortlist other = learn({.common = 0}, joined, report);
  const Ids word = joined.source->encode("neu");
  EXPECT_THAT(other.words(word), Contains(word[0]));
  EXPECT_THAT(other.words({}), Not(Contains(word[0])));
}

TEST_F(ShortlistTest, ListsFrequentWordsForEverySentence) {
  const Shortlist found = learn({.common = 2});
  EXPECT_THAT(listed(found, ""), IsSupersetOf({"the", "a"}));
  EXPECT_EQ(listed(found, "").size(), 4u);
  // All but "nothing", which translates an empty line.
  EXPECT_EQ(std::ssize(learn({.common = 1000}).words({})) + 1, text_.target->vocabulary().size());
}

TEST_F(ShortlistTest, ListsWhatATranslationMustBeginWith) {
  const Shortlist found = learn({.per_word = 1, .common = 0});
  EXPECT_THAT(listed(found, "das"), Not(Contains("vienna")));
  EXPECT_THAT(listed(found, "das", "vienna <unk>"), Contains("vienna"));
}

TEST_F(ShortlistTest, WordsAscendAndComeOnce) {
  const Shortlist found = learn({});
  const Ids words = found.words(source("das haus das buch"), target("the a"));
  EXPECT_TRUE(std::ranges::is_sorted(words));
  EXPECT_EQ(std::set(words.begin(), words.end()).size(), words.size());
  EXPECT_EQ(
      error_of([&] {
        found.words(Ids{4, 99});
      }),
      concat(
          "ids of a sentence must be in [0, ", text_.source->vocabulary().size(), "), but got 99"));
}

TEST_F(ShortlistTest, SaysWhatItWasLearnedFrom) {
  ShortlistReport report;
  learn({.common = 0}, text_, report);
  EXPECT_EQ(report.pairs, 6);
  EXPECT_EQ(report.empty, 1);
  EXPECT_EQ(report.source_symbols.symbols, 12);
  EXPECT_EQ(report.target_symbols.symbols, 13);
  EXPECT_EQ(report.covered, 1);
  EXPECT_GT(report.listed, 4);
  learn({.per_word = 1, .common = 0, .iterations = 1}, text_, report);
  EXPECT_LT(report.covered, 1);
}

TEST_F(ShortlistTest, RefusesWhatCannotBeLearnedFrom) {
  const auto error = [&](const std::string& source, const std::string& target) {
    ShortlistReport report;
    return error_of([&] {
      Shortlist::learn(
          text_, {folder_.write("a", source)}, {folder_.write("b", target)}, {}, report);
    });
  };
  EXPECT_THAT(error("eins\nzwei\n", "one\n"), HasSubstr("has 2 and"));
  EXPECT_THAT(error("\n\n", "one\ntwo\n"), HasSubstr("2 have an empty side"));
  EXPECT_THAT(error("", ""), HasSubstr("no pairs to learn from"));
  EXPECT_THAT(error("das\n\xff\n", "one\ntwo\n"), HasSubstr("/a:2: "));
  for (const auto& [options, wanted] :
       {std::pair{
            ShortlistOptions{.per_word = 0}, "per_word must be between 1 and 10000, but got 0"},
        {ShortlistOptions{.common = -1}, "common must be between 0 and 1000000, but got -1"},
        {ShortlistOptions{.iterations = 101}, "iterations must be between 1 and 100, but got 101"}})
    EXPECT_EQ(error_of<UsageError>([&, &given = options] { learn(given); }), wanted);
}

/// Tells which lists it was given.
class ListeningBackend : public TableTranslation {
 public:
  using TableTranslation::TableTranslation;

  bool limits_words() const override { return true; }
  std::unique_ptr<StepDecoder> start_within(
      const std::vector<Ids>& sources, const std::vector<Ids>& words) const override {
    EXPECT_EQ(sources.size(), words.size());
    for (size_t i = 0; i < sources.size(); ++i)
      heard[sources[i]] = words[i];
    return start(sources);
  }

  mutable std::map<Ids, Ids> heard;
};

TEST_F(ShortlistTest, IsToldToWhatRunsTheModel) {
  const auto backend = std::make_shared<ListeningBackend>(
      text_.target->vocabulary().size(), testing::FailingWords{}, 0);
  TranslationSystem system;
  system.text = text_;
  system.backend = backend;
  const auto list = std::make_shared<const Shortlist>(learn({.per_word = 1, .common = 0}));
  system.shortlist = list;
  Translator(system, {})
      .translate(
          {{{.text = "das buch"}},
           {{.text = ""}},
           {{.text = "ein haus", .target_prefix = "vienna"}}});
  EXPECT_EQ(backend->heard.size(), 2u);
  EXPECT_EQ(backend->heard[source("das buch")], list->words(source("das buch")));
  EXPECT_EQ(backend->heard[source("ein haus")], list->words(source("ein haus"), target("vienna")));
}

TEST_F(ShortlistTest, IsRefusedWhereItCannotBeHeeded) {
  TranslationSystem system;
  system.text = text_;
  const auto backend = std::make_shared<TableTranslation>(
      text_.target->vocabulary().size(), testing::FailingWords{}, 0);
  system.backend = backend;
  system.shortlist = std::make_shared<const Shortlist>(learn({}));
  EXPECT_THAT(
      error_of<UsageError>([&] { Translator(system, {}); }),
      HasSubstr("a shortlist must be for a model of one softmax in the runtime"));
  EXPECT_THAT(
      error_of([&] { backend->start_within({{4}}, {{2}}); }), HasSubstr("takes no shortlist"));
}

}  // namespace
}  // namespace seqconv::internal
