#include "text/text_source.h"

#include "base/error.h"
#include "base/json_texts.h"
#include "base/sha1.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// The text of a side; its lines are sentences.
std::string line_of(PairSide side, const std::vector<std::string>& texts) {
  return side == PairSide::kSource ? document_line(texts) : summary_line(texts);
}

/// A list of several targets could be sentences or alternatives.
void check_one_target(
    const TextSource& source, const std::vector<std::string>& texts, const std::string& where) {
  SEQCONV_CHECK(
      source.side == PairSide::kSource || texts.size() == 1,
      where,
      ": \"",
      source.key,
      "\" must be one text, but is a list of ",
      texts.size(),
      ": \"",
      source.key,
      ".0\" names the first");
}

std::string json_side(const TextSource& source, const std::string& line, const std::string& where) {
  const auto texts = json_line_texts(line, source.key, where);
  check_one_target(source, texts, where);
  for (const std::string& text : texts)
    SEQCONV_CHECK(
        text.find('\0') == std::string::npos,
        where,
        ": \"",
        source.key,
        "\" must be text, but holds NUL");
  return line_of(source.side, texts);
}

std::string story_side(
    const TextSource& source, const std::string& name, const std::string& where) {
  const Story story = read_story(source, name, where);
  if (source.side == PairSide::kSource)
    return story.article;
  SEQCONV_CHECK(
      !story.highlights.empty(),
      where,
      ": ",
      find_story(source, name, where).string(),
      ": a story must have a line \"@highlight\" with a sentence below, but has none");
  return summary_line(story.highlights);
}

/// The lists that CNN-DailyMail comes with have the articles' addresses, whose
/// digests are the files' names.
std::string story_name(const std::string& line) {
  const std::string name = document_line({line});
  const bool is_address = name.starts_with("http://") || name.starts_with("https://");
  return is_address ? sha1_hex(name) : name;
}

}  // namespace

TextSourceReader::TextSourceReader(const TextSource& source, BadBytes bad_bytes)
    : source_(source), lines_(source.file, bad_bytes) {}

TextSourceReader::TextSourceReader(
    std::istream& stream, std::string name, BadBytes bad_bytes, int64_t lines_before)
    : source_(name), lines_(stream, name, bad_bytes, lines_before) {}

bool TextSourceReader::next(std::string& text) {
  for (bool blank = true; blank;) {
    do {
      if (!lines_.next(text))
        return false;
    } while (is_passed_over());
    blank = source_.format == TextFormat::kJson && is_blank(text);
    blank_lines_ += blank;
  }
  if (source_.format != TextFormat::kText)
    text = text_of(text);
  return true;
}

bool TextSourceReader::is_passed_over() {
  if (!source_.without || passed_over_ == source_.without->size() ||
      (*source_.without)[passed_over_] != lines_.line_number())
    return false;
  ++passed_over_;
  return true;
}

std::string TextSourceReader::text_of(const std::string& line) const {
  switch (source_.format) {
    case TextFormat::kText:
      return line;
    case TextFormat::kJson:
      return json_side(source_, line, where());
    case TextFormat::kStory:
      return story_side(source_, line, where());
  }
  fail("unknown format of text ", static_cast<int>(source_.format));
}

RootedPath find_story(const TextSource& source, const std::string& name, const std::string& where) {
  const std::string wanted = story_name(name);
  SEQCONV_CHECK(!wanted.empty(), where, ": the name of a story was wanted, but the line is blank");
  const std::string outward = outward_name(wanted);
  std::string looked;
  std::error_code none;
  for (const std::string& folder : source.folders) {
    for (const char* ending : {"", ".story"}) {
      if (!outward.empty())
        continue;
      const RootedPath file = RootedPath(folder, source.links) / (wanted + ending);
      // Opening says what is wrong with one that is no ordinary file.
      if (fs::exists(fs::symlink_status(file, none)) && !fs::is_directory(file, none))
        return file;
    }
    looked += concat(looked.empty() ? "'" : " or '", folder, "'");
  }
  fail(
      where,
      ": there is no story '",
      shorten(wanted),
      "', with or without '.story', in ",
      looked,
      outward.empty() ? "" : ": as a name, " + outward);
}

Story read_story(const TextSource& source, const std::string& name, const std::string& where) {
  const RootedPath file = find_story(source, name, where);
  return located([&] { return where; }, [&] { return read_story(file); });
}

std::vector<RootedPath> files_of(const TextSource& source) {
  std::vector<RootedPath> files = {source.file};
  if (source.format != TextFormat::kStory)
    return files;
  LineReader names(source.file);
  for (std::string name; names.next(name);)
    files.push_back(find_story(source, name, names.where()));
  return files;
}

}  // namespace seqconv::internal
