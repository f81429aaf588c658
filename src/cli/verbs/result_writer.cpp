#include "cli/verbs/result_writer.h"

#include <algorithm>
#include <cstring>

#include "base/json_texts.h"
#include "base/one_line.h"
#include "base/options.h"
#include "text/documents.h"

namespace seqconv::internal::verbs {
namespace {

// Beside control characters, which JSON escapes anyway, some readers end a line
// at these; they can only stand inside strings.
std::string escape_line_ends(std::string object) {
  for (const auto& [raw, escaped] :
       {std::pair{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}})
    for (size_t at = 0; (at = object.find(raw, at)) != std::string::npos;)
      object.replace(at, std::strlen(raw), escaped);
  return object;
}

// An object: the members that came in, then ours, which replace those of the
// same name.
std::string with_members(
    const std::vector<JsonMember>& members, const std::vector<std::pair<std::string, Json>>& ours) {
  std::string object;
  const auto add = [&](const std::string& key, const std::string& value) {
    object += concat(object.empty() ? "{" : ",", key, ":", value);
  };
  for (const JsonMember& member : members)
    if (std::none_of(
            ours.begin(), ours.end(), [&](const auto& own) { return own.first == member.name; }))
      add(member.key, member.value);
  for (const auto& [name, value] : ours)
    add(json_line(name), json_line(value));
  return object + "}";
}

/// Symbols joined by blanks.
std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens)
    text += text.empty() ? token : " " + token;
  return text;
}

/// [begin, end] of each.
Json ranges_of(const std::vector<ByteRange>& ranges) {
  Json list = Json::array();
  for (const ByteRange& range : ranges)
    list.push_back({range.begin, range.end});
  return list;
}

/// As Pharaoh wrote it: "0-0 1-2", source first.
std::string alignment_text(const std::vector<AlignedTokens>& alignment) {
  std::string text;
  for (const AlignedTokens& pair : alignment)
    text += concat(text.empty() ? "" : " ", pair.source, "-", pair.target);
  return text;
}

/// The shares as a list of rows, one a token of the translation.
Json rows_of(const std::vector<float>& shares, size_t tokens) {
  Json rows = Json::array();
  const size_t width = shares.size() / std::max<size_t>(tokens, 1);
  for (size_t i = 0; i < shares.size(); i += width)
    rows.push_back(std::vector<float>(
        shares.begin() + static_cast<std::ptrdiff_t>(i),
        shares.begin() + static_cast<std::ptrdiff_t>(i + width)));
  return rows;
}

Json list_of(const Translations& translations, Alignments alignments) {
  Json list = Json::array();
  for (const Translation& translation : translations) {
    Json& own = list.emplace_back(Json{
        {"text", translation.text},
        {"tokens", joined(translation.tokens)},
        {"score", translation.score},
        {"log_probability", translation.log_probability},
        {"token_scores", translation.token_scores}});
    if (alignments == Alignments::kNone)
      continue;
    own["alignment"] = alignment_text(translation.alignment);
    own["token_ranges"] = ranges_of(translation.token_ranges);
    if (alignments == Alignments::kShares)
      own["source_shares"] = rows_of(translation.source_shares, translation.tokens.size());
  }
  return list;
}

// The best, or a list where several were asked for; sentences are lines.
Json summaries_of(const Translations& translations, bool several) {
  Json list = Json::array();
  for (const Translation& translation : translations)
    list.push_back(sentence_lines(translation.text));
  return several || list.empty() ? list : list[0];
}

// Results of an earlier run, under the same key, would look like ours.
std::string failure_object(RequestOrigin origin, const std::string& key, int64_t number) {
  std::erase_if(origin.members, [&](const JsonMember& member) { return member.name == key; });
  return with_members(origin.members, {{"error", origin.error}, {"line", number}});
}

}  // namespace

ResultWriter::ResultWriter(const TranslateArguments& arguments, OutputFormat format, bool several)
    : format_(format),
      several_(several),
      summaries_(arguments.summary.has_value()),
      alignments_(arguments.alignments),
      key_(summaries_ ? arguments.summary->summary_key : std::string("translations")) {}

std::string ResultWriter::result_object(
    const RequestOrigin& origin, const TranslationResult& result) const {
  const Translations& found = result.translations;
  std::vector<std::pair<std::string, Json>> ours = {
      {key_,
       summaries_ ? summaries_of(found, several_ || origin.several) : list_of(found, alignments_)}};
  if (alignments_ != Alignments::kNone) {
    ours.emplace_back("source_tokens", joined(result.source_tokens));
    ours.emplace_back("source_ranges", ranges_of(result.source_ranges));
  }
  return with_members(origin.members, ours);
}

std::string ResultWriter::text_line(const Translation& translation) const {
  std::string line = one_line(translation.text);
  if (alignments_ != Alignments::kNone)
    line += concat(" ||| ", alignment_text(translation.alignment));
  return line;
}

void ResultWriter::write(
    const RequestOrigin& origin,
    const TranslationResult& result,
    int64_t number,
    std::ostream& out) const {
  if (format_ == OutputFormat::kJson)
    out << escape_line_ends(
               origin.error.empty() ? result_object(origin, result)
                                    : failure_object(origin, key_, number))
        << '\n';
  else if (several_)
    for (const Translation& translation : result.translations)
      out << number << '\t' << translation.score << '\t' << text_line(translation) << '\n';
  else
    out << (result.translations.empty() ? "" : text_line(result.translations.front())) << '\n';
}

}  // namespace seqconv::internal::verbs
