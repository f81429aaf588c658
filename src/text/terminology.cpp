#include "text/terminology.h"

#include <algorithm>
#include <utility>

#include "base/characters.h"
#include "base/error.h"
#include "base/json_texts.h"
#include "base/utf8.h"
#include "text/line_reader.h"

namespace seqconv::internal {
namespace {

/// Tells whether a word may end, and another begin, between two characters.
bool parts_words(char32_t before, char32_t after) {
  return !is_part_of_word(before) || !is_part_of_word(after) || is_written_without_spaces(before) ||
      is_written_without_spaces(after);
}

/// A part of a line that terms are made of: a word, white space, or another character.
struct Part {
  std::string spelled;  ///< white space as a blank
  std::string folded;   ///< without regard to case
};

/// Reads the part that begins at `at` and moves behind it.
Part next_part(std::string_view line, size_t& at) {
  const size_t begin = at;
  std::u32string folded;
  char32_t c = next_code_point(line, at);
  const bool blank = is_space(c);
  append_folded(c, folded);
  while (at < line.size()) {
    size_t behind = at;
    const char32_t next = next_code_point(line, behind);
    if (blank ? !is_space(next) : parts_words(c, next))
      break;
    append_folded(next, folded);
    c = next;
    at = behind;
  }
  if (blank)
    return {" ", " "};
  return {std::string(line.substr(begin, at - begin)), encode_utf8(folded)};
}

Term split_term(const std::string& line, const std::string& where) {
  const size_t tab = line.find('\t');
  SEQCONV_CHECK(
      tab != line.npos && line.find('\t', tab + 1) == line.npos,
      where,
      ": a term must be SOURCE<tab>TARGET, but got '",
      shorten(line),
      "'");
  return {
      std::string(trim_end(trim_start(line.substr(0, tab)))),
      std::string(trim_end(trim_start(line.substr(tab + 1))))};
}

}  // namespace

Terminology::Terminology(std::vector<Term> terms, const std::string& where)
    : terms_(std::move(terms)) {
  for (size_t number = 0; number < terms_.size(); ++number)
    add(terms_[number], number, where);
}

void Terminology::add(const Term& term, size_t number, const std::string& where) {
  for (const std::string* side : {&term.source, &term.target})
    SEQCONV_CHECK(
        find_invalid_utf8(*side) == std::string::npos && !is_blank(*side) &&
            side->find_first_of("\t\r\n") == std::string::npos,
        where,
        ": both sides of a term must be text of one line in UTF-8, but got '",
        shorten(replace_invalid_utf8(*side)),
        "'");
  const bool any_case = to_lower(term.source) == term.source;
  std::string spelling, first;
  size_t parts = 0;
  for (size_t at = 0; at < term.source.size(); ++parts) {
    const Part part = next_part(term.source, at);
    spelling += any_case ? part.folded : part.spelled;
    if (parts == 0)
      first = part.folded;
  }
  size_t& most = most_parts_[first];
  most = std::max(most, parts);
  const auto [same, is_new] = (any_case ? any_case_ : as_spelled_).emplace(spelling, number);
  const std::string& before = terms_[same->second].target;
  SEQCONV_CHECK(
      is_new || before == term.target,
      where,
      ": '",
      shorten(term.source),
      "' must have one translation, but has '",
      shorten(before),
      "' and '",
      shorten(term.target),
      "'");
}

std::vector<Term> read_terms(const RootedPath& file) {
  std::vector<Term> terms;
  LineReader reader(file);
  for (std::string line; reader.next(line);)
    if (!is_blank(line))
      terms.push_back(split_term(line, reader.where()));
  return terms;
}

std::vector<Term> terms_in(const Json& object, const std::string& where) {
  SEQCONV_CHECK(
      object.is_object(),
      where,
      ": \"terms\" must be an object of texts, but got ",
      shorten(json_line(object)));
  std::vector<Term> terms;
  for (const auto& [source, target] : object.items()) {
    SEQCONV_CHECK(
        target.is_string(),
        where,
        ": the term '",
        shorten(source),
        "' must have a text, but got ",
        shorten(json_line(target)));
    terms.push_back({source, target.get<std::string>()});
  }
  return terms;
}

Terminology Terminology::load(const RootedPath& file) {
  return Terminology(read_terms(file), file.string());
}

/// Behind the longest term that begins at `at`, whose number `term` becomes; `at` for none.
size_t Terminology::longest_at(std::string_view line, size_t at, size_t& term) const {
  size_t end = at, longest = at;
  Part part = next_part(line, end);
  const auto most = most_parts_.find(part.folded);
  if (most == most_parts_.end())
    return at;
  size_t parts_left = most->second;
  for (std::string spelled, folded;;) {
    spelled += part.spelled;
    folded += part.folded;
    for (const auto& [terms, text] : {std::pair(&any_case_, &folded), {&as_spelled_, &spelled}})
      if (const auto found = terms->find(*text); found != terms->end()) {
        term = found->second;
        longest = end;
      }
    if (--parts_left == 0 || end == line.size())
      return longest;
    part = next_part(line, end);
  }
}

std::vector<TermInText> Terminology::find(std::string_view line) const {
  std::vector<TermInText> found;
  for (size_t at = 0; at < line.size() && !empty();) {
    size_t term = 0;
    const size_t end = longest_at(line, at, term);
    if (end > at)
      found.push_back({at, end, terms_[term].target});
    else
      next_part(line, at);
    at = std::max(at, end);
  }
  return found;
}

std::vector<TermInText> find_terms(
    std::string_view line, const Terminology& first, const Terminology& second) {
  std::vector<TermInText> found = first.find(line);
  const auto by_first = static_cast<std::ptrdiff_t>(found.size());
  for (const TermInText& term : second.find(line))
    if (std::none_of(found.begin(), found.begin() + by_first, [&](const TermInText& other) {
          return other.begin < term.end && term.begin < other.end;
        }))
      found.push_back(term);
  std::ranges::sort(found, {}, &TermInText::begin);
  return found;
}

}  // namespace seqconv::internal
