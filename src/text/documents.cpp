#include "text/documents.h"

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/line_reader.h"

namespace seqconv::internal {
namespace {

/// Without white space (is_space) at both ends.
std::string_view trimmed(std::string_view text) {
  text = trim_end(text);
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    if (!is_space(next_code_point(text, end)))
      return text.substr(at);
    at = end;
  }
  return {};
}

void append_with(std::string_view separator, std::string_view piece, std::string& line) {
  if (piece.empty())
    return;
  if (!line.empty())
    line += separator;
  line += piece;
}

std::string joined_lines(const std::vector<std::string>& texts, std::string_view separator) {
  std::string joined;
  for (const std::string& text : texts)
    for (const std::string_view line : split_lines(text))
      append_with(separator, trimmed(line), joined);
  return joined;
}

}  // namespace

std::string document_line(const std::vector<std::string>& texts) {
  return joined_lines(texts, " ");
}

std::string summary_line(const std::vector<std::string>& texts) {
  return joined_lines(texts, concat(" ", kSentenceEnd, " "));
}

std::string sentence_lines(std::string_view summary) {
  std::string lines;
  for (size_t at = 0;;) {
    const size_t end = summary.find(kSentenceEnd, at);
    lines += summary.substr(at, end - at);
    if (end == std::string_view::npos)
      return lines;
    while (lines.ends_with(' '))
      lines.pop_back();
    lines += '\n';
    at = std::min(summary.find_first_not_of(' ', end + kSentenceEnd.size()), summary.size());
  }
}

Story read_story(const RootedPath& file) {
  LineReader reader(file);
  Story story;
  std::string* part = &story.article;
  std::string line;
  while (reader.next(line)) {
    if (trimmed(line) == "@highlight")
      part = &story.highlights.emplace_back();
    else
      append_with(" ", document_line({line}), *part);
  }
  std::erase(story.highlights, "");
  return story;
}

}  // namespace seqconv::internal
