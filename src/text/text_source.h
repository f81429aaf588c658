#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "base/rooted_path.h"
#include "text/documents.h"
#include "text/line_reader.h"

namespace seqconv::internal {

/// Says what the lines of a file are.
enum class TextFormat {
  kText,   ///< texts
  kJson,   ///< JSON objects that hold texts
  kStory,  ///< names of story files (text/documents.h)
};
template <>
struct EnumNames<TextFormat> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, TextFormat>>(
      {{"text", TextFormat::kText}, {"json", TextFormat::kJson}, {"story", TextFormat::kStory}});
};

/// Says how files hold documents together with their summaries. Models remember
/// it, so that they read documents as they were trained on
/// (docs/summarising.md).
struct DocumentOptions {
  TextFormat format = TextFormat::kText;
  std::string source_key{};
  std::string target_key{};

  template <class Visitor>
  void visit(Visitor& v) {
    v("format", format, "text, json or story");
    v("source_key", source_key, "json: what names the document");
    v("target_key", target_key, "json: what names the summary");
  }
};

/// One of the two texts of a sample.
enum class PairSide { kSource, kTarget };

/// Says where texts come from: a file and, where it holds both sides of
/// samples, which of them.
struct TextSource {
  /// The lines of a file. Not explicit: a name alone is one.
  template <std::convertible_to<std::filesystem::path> Path>
  TextSource(const Path& path) : file(std::filesystem::path(path).string()) {}

  std::string file;
  TextFormat format = TextFormat::kText;
  PairSide side = PairSide::kSource;
  std::string key{};                   ///< kJson: with dots (json_texts)
  std::vector<std::string> folders{};  ///< kStory: where the stories are
  Links links = Links::kInside;        ///< kStory: of those folders
  /// The numbers of lines that are passed over, from 1, in ascending order; null: none.
  std::shared_ptr<const std::vector<int64_t>> without{};
};

/// Reads texts one by one, each as one line: the sentences of a target, where
/// the file has them as lines, end in kSentenceEnd.
class TextSourceReader {
 public:
  /// Errors of next(), besides those of LineReader, name file and line: JSON
  /// without the text or with a list of several targets; a story that is not
  /// there, or none of whose highlights has text where the target is wanted.
  explicit TextSourceReader(const TextSource& source, BadBytes bad_bytes = BadBytes::kReject);
  /// Lines of a stream that outlives the reader; `name` is for messages, and
  /// `lines_before` are the lines in front of the stream, which count too.
  TextSourceReader(
      std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before = 0);

  /// The next text; false at the end of the file. Blank lines between JSON
  /// objects and the source's lines `without` are passed over.
  bool next(std::string& text);
  /// Number of the line that the text is of, from 1.
  int64_t line_number() const { return lines_.line_number(); }
  /// Blank lines so far between JSON objects.
  int64_t blank_lines() const { return blank_lines_; }
  /// Lines so far in which bad bytes were replaced.
  int64_t replaced_lines() const { return lines_.replaced_lines(); }
  /// "file:line" of the text.
  std::string where() const { return lines_.where(); }

 private:
  std::string text_of(const std::string& line) const;
  bool is_passed_over();

  TextSource source_;
  LineReader lines_;
  size_t passed_over_ = 0;  // lines of source_.without
  int64_t blank_lines_ = 0;
};

/// The file of a story in the first of the source's folders that has it: with
/// or without ".story", under its name or, where that is an address
/// (http://...), the SHA-1 digest of it. Error behind `where` when none does.
RootedPath find_story(const TextSource& source, const std::string& name, const std::string& where);

/// The story there. Errors of find_story and read_story, behind `where`.
Story read_story(const TextSource& source, const std::string& name, const std::string& where);

/// The files that a source is read from: its own and, behind it, its stories.
std::vector<RootedPath> files_of(const TextSource& source);

}  // namespace seqconv::internal
