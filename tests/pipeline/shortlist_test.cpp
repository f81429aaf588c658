#include "seqconv/pipeline/shortlist.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "seqconv/base/checksum.h"
#include "seqconv/base/files.h"
#include "seqconv/base/safetensors.h"
#include "seqconv/pipeline/translator.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "table_backend.h"

// Which words a translation may hold: learned, kept in a file, and told to what
// runs the model.
namespace seqconv {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::TableTranslation;

using Ids = std::vector<int32_t>;

constexpr const char* kSource =
    "das haus\ndas buch\nein buch\nein haus\n\nwien 42\ndas auto\n";
constexpr const char* kTarget =
    "the house\nthe book\na book\na house\nnothing\nvienna 42\nthe car\n";

class ShortlistTest : public ::testing::Test {
 protected:
  ShortlistTest() : text_(make_text(/*joined=*/false)) {}

  TranslationText make_text(bool joined, const std::string& more = "") const {
    TextOptions options{.subword = Subword::kNone};
    options.joined = joined;
    return TranslationText::create(
        options,
        {folder_.write("train.source", kSource + more)},
        {folder_.write("train.target", kTarget)});
  }

  Shortlist learn(
      const ShortlistOptions& options,
      const TranslationText& text,
      ShortlistReport& report) const {
    return Shortlist::learn(
        text,
        {folder_.write("source", kSource)},
        {folder_.write("target", kTarget)},
        options,
        report);
  }
  Shortlist learn(const ShortlistOptions& options) const {
    ShortlistReport report;
    return learn(options, text_, report);
  }

  Ids source(const std::string& line) const {
    return text_.source->encode(line);
  }
  Ids target(const std::string& line) const {
    return text_.target->encode(line);
  }
  /// The words that are listed for a line and can come.
  std::set<std::string> listed(
      const Shortlist& shortlist,
      const std::string& line,
      const std::string& prefix = "") const {
    const Vocabulary& vocabulary = text_.target->vocabulary();
    std::set<std::string> words;
    for (const int32_t id : shortlist.words(source(line), target(prefix)))
      if (is_producible(id) &&
          !std::ranges::binary_search(vocabulary.padding(), id))
        words.insert(vocabulary.symbol(id));
    return words;
  }

  fs::path file() const { return folder_.path() / "shortlist"; }

  testing::TemporaryFolder folder_;
  TranslationText text_;
};

/// The same lists for every word and for none.
void expect_same_lists(
    const Shortlist& a,
    const Shortlist& b,
    const TranslationText& text) {
  EXPECT_EQ(a.words({}), b.words({}));
  for (int32_t id = 0; id < text.source->vocabulary().size(); ++id)
    EXPECT_EQ(a.words(Ids{id}), b.words(Ids{id})) << id;
}

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
  EXPECT_EQ(
      std::ssize(learn({.common = 1000}).words({})) + 1,
      text_.target->vocabulary().size());
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
          "ids of a sentence must be in [0, ",
          text_.source->vocabulary().size(),
          "), but got 99"));
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
          text_,
          {folder_.write("a", source)},
          {folder_.write("b", target)},
          {},
          report);
    });
  };
  EXPECT_THAT(error("eins\nzwei\n", "one\n"), HasSubstr("has 2 and"));
  EXPECT_THAT(error("\n\n", "one\ntwo\n"), HasSubstr("2 have an empty side"));
  EXPECT_THAT(error("", ""), HasSubstr("no pairs to learn from"));
  EXPECT_THAT(error("das\n\xff\n", "one\ntwo\n"), HasSubstr("/a:2: "));
  for (const auto& [options, wanted] :
       {std::pair{
            ShortlistOptions{.per_word = 0},
            "per_word must be between 1 and 10000, but got 0"},
        {ShortlistOptions{.common = -1},
         "common must be between 0 and 1000000, but got -1"},
        {ShortlistOptions{.iterations = 101},
         "iterations must be between 1 and 100, but got 101"}})
    EXPECT_EQ(
        error_of<UsageError>([&, &given = options] { learn(given); }),
        wanted);
}

TEST_F(ShortlistTest, IsReadAsItWasWritten) {
  for (const ShortlistOptions& options :
       {ShortlistOptions{}, ShortlistOptions{.per_word = 2, .common = 0}}) {
    const Shortlist learned = learn(options);
    learned.write(file());
    expect_same_lists(Shortlist::load(file(), text_), learned, text_);
  }
}

TEST_F(ShortlistTest, IsRefusedForOtherVocabularies) {
  learn({}).write(file());
  const auto error = [&](const TranslationText& text) {
    return error_of([&] { Shortlist::load(file(), text); });
  };
  const TranslationText other = make_text(false, "mehr\n");
  EXPECT_THAT(
      error(other),
      HasSubstr("/shortlist: the shortlist is of another "
                "source vocabulary than the model: 1"));
  // As many symbols, one of them another.
  TranslationText swapped = text_;
  std::swap(swapped.source, swapped.target);
  EXPECT_THAT(error(swapped), HasSubstr("another source vocabulary"));
  swapped.source = text_.source;
  EXPECT_THAT(error(swapped), HasSubstr("another target vocabulary"));
}

TEST_F(ShortlistTest, DamageNeverPassesUnseen) {
  const Shortlist learned = learn({.per_word = 3, .common = 2});
  learned.write(file());
  const std::string good = read_file(file());
  const auto expect_error_or_same = [&](const std::string& content) {
    const fs::path damaged = folder_.write("damaged", content);
    try {
      expect_same_lists(Shortlist::load(damaged, text_), learned, text_);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged: "));
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    const fs::path cut = folder_.write("cut", good.substr(0, size));
    EXPECT_THAT(
        error_of([&] { Shortlist::load(cut, text_); }),
        HasSubstr("cut: "));
  }
  for (size_t place = 0; place < good.size(); ++place)
    for (const int change : {1, 16, 128}) {
      std::string bad = good;
      bad[place] = static_cast<char>(bad[place] ^ change);
      expect_error_or_same(bad);
    }
}

/// Files whose checksum fits, made to do harm.
class HostileShortlist : public ShortlistTest {
 protected:
  HostileShortlist() {
    learn({.common = 2}).write(file());
    const SafetensorsReader reader(file());
    metadata_ = reader.metadata();
    common_ = copy<int32_t>(reader, "common");
    listed_ = copy<int32_t>(reader, "listed");
    ends_ = copy<int64_t>(reader, "ends");
  }

  template <class T>
  static std::vector<T> copy(
      const SafetensorsReader& reader,
      const char* name) {
    std::vector<T> values(static_cast<size_t>(reader.at(name).count()));
    std::memcpy(
        values.data(),
        reader.at(name).data.data(),
        reader.at(name).data.size());
    return values;
  }

  /// What is said of the present content.
  std::string error() const {
    const auto view = [](ElementType type, const auto& values) {
      return TensorView{
          type,
          {std::ssize(values)},
          std::as_bytes(std::span(values))};
    };
    const std::map<std::string, TensorView> tensors = {
        {"common", view(ElementType::kI32, common_)},
        {"ends", view(ElementType::kI64, ends_)},
        {"listed", view(ElementType::kI32, listed_)}};
    auto metadata = metadata_;
    uint64_t sum = 0;
    metadata.erase("checksum");
    for (const auto& [key, value] : metadata)
      sum = checksum(std::as_bytes(std::span(value)), sum);
    for (const auto& [name, tensor] : tensors)
      sum = checksum(tensor.data, sum);
    metadata["checksum"] = checksum_text(sum);
    const fs::path bad = folder_.path() / "bad";
    write_safetensors(bad, tensors, metadata);
    return error_of([&] { Shortlist::load(bad, text_); });
  }

  std::map<std::string, std::string> metadata_;
  std::vector<int32_t> common_;
  std::vector<int32_t> listed_;
  std::vector<int64_t> ends_;
};

TEST_F(HostileShortlist, WordsOutOfPlace) {
  common_ = {5, 4};
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, it lists word 4"));
  common_ = {4, 4};
  EXPECT_THAT(error(), HasSubstr("it lists word 4 where one from 5"));
  common_ = {2};
  EXPECT_THAT(error(), HasSubstr("it lists word 2 where one from 4"));
  common_ = {1 << 30};
  EXPECT_THAT(error(), HasSubstr("it lists word 1073741824"));
  common_ = {};
  listed_.front() = -1;
  EXPECT_THAT(error(), HasSubstr("it lists word -1"));
}

TEST_F(HostileShortlist, ListsThatDoNotEnd) {
  const auto good = ends_;
  for (const int64_t end : {int64_t{-1}, int64_t{1} << 62, INT64_MIN}) {
    ends_ = good;
    ends_[4] = end;
    EXPECT_THAT(error(), HasSubstr("do not end where they should")) << end;
  }
  ends_ = good;
  ++ends_.back();
  EXPECT_THAT(error(), HasSubstr("do not end"));
  ends_ = good;
  ends_.pop_back();
  EXPECT_THAT(error(), HasSubstr("do not end"));
  ends_.clear();
  EXPECT_THAT(error(), HasSubstr("do not end"));
}

TEST_F(HostileShortlist, OtherFiles) {
  metadata_["format"] = "seqconv-shortlist-2";
  EXPECT_THAT(
      error(),
      HasSubstr("of version 1, but got 'seqconv-shortlist-2'"));
  metadata_["format"] = "seqconv-training-state-1";
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, its format is"));
  metadata_.erase("format");
  EXPECT_THAT(error(), HasSubstr("bad: no shortlist, its metadata lack"));
}

/// Tells which lists it was given.
class ListeningBackend : public TableTranslation {
 public:
  using TableTranslation::TableTranslation;

  bool limits_words() const override { return true; }
  std::unique_ptr<StepDecoder> start_within(
      const std::vector<Ids>& sources,
      const std::vector<Ids>& words) const override {
    EXPECT_EQ(sources.size(), words.size());
    for (size_t i = 0; i < sources.size(); ++i)
      heard[sources[i]] = words[i];
    return start(sources);
  }

  mutable std::map<Ids, Ids> heard;
};

TEST_F(ShortlistTest, IsToldToWhatRunsTheModel) {
  const auto backend = std::make_shared<ListeningBackend>(
      text_.target->vocabulary().size(),
      testing::FailingWords{},
      0);
  TranslationSystem system;
  system.text = text_;
  system.backend = backend;
  const auto list =
      std::make_shared<const Shortlist>(learn({.per_word = 1, .common = 0}));
  system.shortlist = list;
  Translator(system, {})
      .translate(
          {{.line = "das buch"},
           {.line = ""},
           {.line = "ein haus", .target_prefix = "vienna"}});
  EXPECT_EQ(backend->heard.size(), 2u);
  EXPECT_EQ(
      backend->heard[source("das buch")],
      list->words(source("das buch")));
  EXPECT_EQ(
      backend->heard[source("ein haus")],
      list->words(source("ein haus"), target("vienna")));
}

TEST_F(ShortlistTest, IsRefusedWhereItCannotBeHeeded) {
  TranslationSystem system;
  system.text = text_;
  const auto backend = std::make_shared<TableTranslation>(
      text_.target->vocabulary().size(),
      testing::FailingWords{},
      0);
  system.backend = backend;
  system.shortlist = std::make_shared<const Shortlist>(learn({}));
  EXPECT_THAT(
      error_of<UsageError>([&] { Translator(system, {}); }),
      HasSubstr("a shortlist must be for a model in the runtime"));
  EXPECT_THAT(
      error_of([&] { backend->start_within({{4}}, {{2}}); }),
      HasSubstr("takes no shortlist"));
}

}  // namespace
}  // namespace seqconv
