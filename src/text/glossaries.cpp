#include "text/glossaries.h"

#include <unicode/regex.h>

#include "base/error.h"

namespace seqconv::internal {
namespace {

using Pattern = std::unique_ptr<icu::RegexPattern>;
using Matcher = std::unique_ptr<icu::RegexMatcher>;

/// `form` is the expression as it is compiled, `glossary` as it was given.
Pattern compile(const std::string& form, const std::string& glossary) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError place;
  // Lines end at LF alone, as in Python.
  Pattern pattern(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(form), UREGEX_UNIX_LINES, place, status));
  if (U_FAILURE(status))
    fail_usage("the glossary '", glossary, "' is no regular expression: ", u_errorName(status));
  return pattern;
}

Matcher match(const Pattern& pattern, const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  Matcher matcher(pattern->matcher(text, status));
  SEQCONV_CHECK(U_SUCCESS(status), "ICU cannot match a glossary: ", u_errorName(status));
  return matcher;
}

bool matches_at_start(const Pattern& pattern, const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const bool found = match(pattern, text)->lookingAt(status);
  SEQCONV_CHECK(U_SUCCESS(status), "a glossary cannot be matched: ", u_errorName(status));
  return found;
}

/// Adds text to a list of parts unless it is empty.
void add_part(const icu::UnicodeString& text, std::vector<icu::UnicodeString>& parts) {
  if (!text.isEmpty())
    parts.push_back(text);
}

/// As Python's re.split with the whole expression in a group: what groups of
/// the expression's own hold comes once more.
void split_at_matches(
    const Pattern& pattern,
    const icu::UnicodeString& text,
    std::vector<icu::UnicodeString>& parts) {
  UErrorCode status = U_ZERO_ERROR;
  const Matcher matcher = match(pattern, text);
  int32_t end = 0;
  while (matcher->find(status)) {
    const int32_t start = matcher->start(status);
    add_part(text.tempSubStringBetween(end, start), parts);
    for (int32_t group = 0; group <= matcher->groupCount(); ++group)
      add_part(matcher->group(group, status), parts);
    end = matcher->end(status);
  }
  SEQCONV_CHECK(U_SUCCESS(status), "a glossary cannot be matched: ", u_errorName(status));
  add_part(text.tempSubStringBetween(end, text.length()), parts);
}

}  // namespace

struct Glossaries::Patterns {
  struct One {
    Pattern inside;  ///< found anywhere
    Pattern whole;   ///< tells a word that is not to be split
  };
  std::vector<One> single;
  Pattern any;  ///< one of them, and nothing else
};

Glossaries::Glossaries(const std::vector<std::string>& glossaries)
    : patterns_(std::make_unique<Patterns>()) {
  std::string all;
  for (const std::string& glossary : glossaries) {
    patterns_->single.push_back(
        {compile(glossary, glossary), compile("^" + glossary + "$", glossary)});
    all += (all.empty() ? "" : "|") + glossary;
  }
  patterns_->any = compile("^(" + all + ")$", all);
}

Glossaries::~Glossaries() = default;

std::vector<std::string> Glossaries::isolate(const std::string& word) const {
  std::vector<icu::UnicodeString> parts = {icu::UnicodeString::fromUTF8(word)};
  for (const Patterns::One& glossary : patterns_->single) {
    std::vector<icu::UnicodeString> next;
    for (const icu::UnicodeString& part : parts) {
      if (matches_at_start(glossary.whole, part))
        next.push_back(part);
      else
        split_at_matches(glossary.inside, part, next);
    }
    parts = std::move(next);
  }
  std::vector<std::string> texts(parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i].toUTF8String(texts[i]);
  return texts;
}

bool Glossaries::is_whole(const std::string& part) const {
  return matches_at_start(patterns_->any, icu::UnicodeString::fromUTF8(part));
}

}  // namespace seqconv::internal
