#include "train/held_out.h"

#include <gmock/gmock.h>

#include <set>

#include "base/files.h"
#include "base/log.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "train/corpus_facts.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> texts_of(const std::vector<TextSource>& sources) {
  std::vector<std::string> texts;
  for (const TextSource& source : sources)
    for (auto [reader, text] = std::pair{TextSourceReader(source), std::string()};
         reader.next(text);)
      texts.push_back(text);
  return texts;
}

/// 400 pairs, sorted by length: "a", "a b", ...; every source comes twice.
class HeldOutSamples : public ::testing::Test {
 protected:
  HeldOutSamples() {
    set_log_level(LogLevel::kError);
    std::string source;
    std::string target;
    std::string line = "w";
    for (int i = 0; i < 400; ++i) {
      if (i % 2 == 0)
        line += concat(" ", i);
      source += line + "\n";
      target += concat("t", i, "\n");
    }
    write("a.source", source);
    write("a.target", target);
    config_.data.train_source = {path("a.source")};
    config_.data.train_target = {path("a.target")};
    config_.data.hold_out = 30;
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) {
    write_file_atomically(path(name), text);
  }

  testing::TemporaryFolder folder_;
  TrainConfig config_;
};

TEST_F(HeldOutSamples, ArePairsOfAllLengthsWithEverythingOfASource) {
  DataOptions& data = config_.data;
  const auto all = texts_of(data.training_pairs().source);
  data.held_out = hold_out(config_, folder_.path());
  const auto held = texts_of(data.validation_pairs().source);
  const auto kept = texts_of(data.training_pairs().source);
  EXPECT_EQ(held.size() + kept.size(), all.size());
  EXPECT_GE(held.size(), 28U);
  EXPECT_LE(held.size(), 30U);
  const std::set<std::string> in_training(kept.begin(), kept.end());
  size_t shortest = 1000;
  size_t longest = 0;
  for (const std::string& source : held) {
    EXPECT_FALSE(in_training.contains(source)) << source;
    shortest = std::min(shortest, source.size());
    longest = std::max(longest, source.size());
  }
  EXPECT_LT(shortest, all[100].size());
  EXPECT_GT(longest, all[300].size());
  // Line by line, what belongs together stays together.
  const auto targets = texts_of(data.training_pairs().target);
  ASSERT_EQ(targets.size(), kept.size());
  for (size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(all[static_cast<size_t>(std::stoi(targets[i].substr(1)))], kept[i]);
  // The rule is of the text alone, and kept with the run.
  const HeldOut again = open_held_out(config_, folder_.path());
  ASSERT_EQ(again.lines.size(), 1U);
  EXPECT_EQ(*again.lines[0], *data.held_out.lines[0]);
}

TEST_F(HeldOutSamples, AreATenthAtMostAndNeverNothing) {
  config_.data.hold_out = 1000;
  config_.data.held_out = hold_out(config_, folder_.path());
  const auto held = texts_of(config_.data.validation_pairs().source);
  EXPECT_LE(held.size(), 40U);
  EXPECT_GE(held.size(), 36U);
  write("few", "a\nb\nc\n");
  config_.data = {};
  config_.data.train_source = config_.data.train_target = {path("few")};
  config_.data.hold_out = 5;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { hold_out(config_, folder_.path()); }),
      HasSubstr("needs 10 training samples or more, but there are 3"));
  write("same", [] {
    std::string text;
    for (int i = 0; i < 100; ++i)
      text += "one\n";
    return text;
  }());
  config_.data.train_source = config_.data.train_target = {path("same")};
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { hold_out(config_, folder_.path()); }),
      HasSubstr("have one source"));
}

TEST_F(HeldOutSamples, OfALanguageModelAreItsLastLines) {
  write("b.text", "x y\n\nlast but one\nlast\n");
  config_.task = Task::kLanguageModel;
  config_.data = {};
  config_.data.train = {path("a.source"), path("b.text")};
  config_.data.hold_out = 2;
  config_.data.held_out = hold_out(config_, folder_.path());
  EXPECT_THAT(
      texts_of(config_.data.validation_text()), ::testing::ElementsAre("last but one", "last"));
  EXPECT_EQ(texts_of(config_.data.training_text()).size(), 402U);  // the blank line stays
}

TEST_F(HeldOutSamples, OfJsonLinesKeepTheirLines) {
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += concat("{\"d\": \"doc ", i / 2, "\", \"s\": \"sum ", i, "\"}\n");
  write("a.jsonl", lines);
  config_.data = {};
  config_.data.train = {path("a.jsonl")};
  config_.data.source_key = "d";
  config_.data.target_key = "s";
  config_.data.hold_out = 6;
  config_.data.held_out = hold_out(config_, folder_.path());
  const auto held = texts_of(config_.data.validation_pairs().source);
  const auto kept = texts_of(config_.data.training_pairs().source);
  EXPECT_EQ(held.size() + kept.size(), 60U);
  EXPECT_EQ(held.size(), 6U);
  EXPECT_EQ(texts_of(config_.data.validation_pairs().target).size(), held.size());
  for (const std::string& text : held)
    EXPECT_EQ(std::ranges::count(kept, text), 0) << text;
}

TEST_F(HeldOutSamples, TheTextTellsItsSizeAndItsOrder) {
  const CorpusFacts facts = measure_corpus(config_);
  EXPECT_EQ(facts.samples, 400);
  EXPECT_TRUE(facts.is_sorted);
  EXPECT_EQ(facts.target_words, 400);
  EXPECT_EQ(facts.alphabet, 13);  // "w", "t", the blank and digits
  write("a.source", "long line\n" + read_file({path("a.source")}));
  write("a.target", "t\n" + read_file({path("a.target")}));
  EXPECT_FALSE(measure_corpus(config_).is_sorted);
  write("a.source", "\n\n");
  EXPECT_THAT(
      testing::error_of([&] { measure_corpus(config_); }),
      HasSubstr("must have the same number of lines, but the sources have 2 and the targets 401"));
  write("a.target", "a\nb\n");
  EXPECT_THAT(testing::error_of([&] { measure_corpus(config_); }), HasSubstr("has no text"));
}

}  // namespace
}  // namespace seqconv::internal
