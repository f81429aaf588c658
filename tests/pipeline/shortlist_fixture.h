#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/special_ids.h"
#include "pipeline/shortlist.h"
#include "support/temporary_folder.h"

namespace seqconv::internal::testing {

inline constexpr const char* kShortlistSource =
    "das haus\ndas buch\nein buch\nein haus\n\nwien 42\ndas auto\n";
inline constexpr const char* kShortlistTarget =
    "the house\nthe book\na book\na house\nnothing\nvienna 42\nthe car\n";

/// Learns shortlists from a few lines.
class ShortlistTest : public ::testing::Test {
 protected:
  ShortlistTest() : text_(make_text(/*joined=*/false)) {}

  TranslationText make_text(bool joined, const std::string& more = "") const {
    TextOptions options{.subword = Subword::kNone};
    options.joined = joined;
    return TranslationText::create(
        options,
        {folder_.write("train.source", kShortlistSource + more)},
        {folder_.write("train.target", kShortlistTarget)});
  }

  Shortlist learn(
      const ShortlistOptions& options, const TranslationText& text, ShortlistReport& report) const {
    return Shortlist::learn(
        text,
        {folder_.write("source", kShortlistSource)},
        {folder_.write("target", kShortlistTarget)},
        options,
        report);
  }
  Shortlist learn(const ShortlistOptions& options) const {
    ShortlistReport report;
    return learn(options, text_, report);
  }

  std::vector<int32_t> source(const std::string& line) const { return text_.source->encode(line); }
  std::vector<int32_t> target(const std::string& line) const { return text_.target->encode(line); }
  /// The words that are listed for a line and can come.
  std::set<std::string> listed(
      const Shortlist& shortlist, const std::string& line, const std::string& prefix = "") const {
    const Vocabulary& vocabulary = text_.target->vocabulary();
    std::set<std::string> words;
    for (const int32_t id : shortlist.words(source(line), target(prefix)))
      if (is_producible(id) && !std::ranges::binary_search(vocabulary.padding(), id))
        words.insert(vocabulary.symbol(id));
    return words;
  }

  TemporaryFolder folder_;
  TranslationText text_;
};

}  // namespace seqconv::internal::testing
