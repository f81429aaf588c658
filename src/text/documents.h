#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/rooted_path.h"

/// Documents and summaries, whose lines are sentences, as single lines of text,
/// which is what models read and write (docs/summarising.md).
namespace seqconv::internal {

/// The sign that stands between two sentences of a summary in one line, with
/// blanks around it: U+2424, SYMBOL FOR NEWLINE.
inline constexpr std::string_view kSentenceEnd = "\xE2\x90\xA4";

/// The lines (split_lines) of texts with a blank between two; blanks at their
/// ends and blank lines go.
std::string document_line(const std::vector<std::string>& texts);

/// The same with kSentenceEnd between two lines.
std::string summary_line(const std::vector<std::string>& texts);

/// The sentences of a summary in one line, each in a line of its own.
std::string sentence_lines(std::string_view summary);

/// A file of CNN-DailyMail: the article's lines, then blocks that begin with
/// the line "@highlight", each a sentence of the summary.
struct Story {
  std::string article;                  ///< one line, maybe empty
  std::vector<std::string> highlights;  ///< one line each, none empty
};

/// Error when it cannot be read or is not UTF-8 (with file and line).
Story read_story(const RootedPath& file);

}  // namespace seqconv::internal
