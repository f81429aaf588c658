#include "text/glossaries.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "text/python_expression.h"

namespace seqconv::internal {
namespace {

using Pattern = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using Match = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR bytes_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

/// `form` is the expression as PCRE2 reads it, `glossary` as it was given.
Pattern compile(const std::string& form, const std::string& glossary) {
  // Classes are Unicode's, and lines end at LF alone, as in Python.
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  SEQCONV_CHECK(context, "no memory is left for the glossary '", glossary, "'");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE place = 0;
  Pattern pattern(
      pcre2_compile(
          bytes_of(form), form.size(), PCRE2_UTF | PCRE2_UCP, &error, &place, context.get()),
      pcre2_code_free);
  if (!pattern)
    fail_usage("the glossary '", glossary, "' is no regular expression: ", message_of(error));
  return pattern;
}

/// One match of a pattern in a text after the other.
class Matcher {
 public:
  Matcher(const Pattern& pattern, std::string_view text)
      : pattern_(pattern.get()),
        text_(text),
        match_(pcre2_match_data_create_from_pattern(pattern_, nullptr), pcre2_match_data_free) {
    SEQCONV_CHECK(match_, "no memory is left for a glossary's matches");
  }

  bool matches_at_start() { return run(0, PCRE2_ANCHORED); }

  /// The next match, as Python's re finds them: behind one that is empty, the next may
  /// begin at its place but is not empty there. The first checks the text's UTF-8.
  bool find_next() {
    const size_t* const ends = pcre2_get_ovector_pointer(match_.get());
    const bool was_empty = found_ && ends[0] == ends[1];
    found_ = found_ ? run(ends[1], PCRE2_NO_UTF_CHECK | (was_empty ? PCRE2_NOTEMPTY_ATSTART : 0))
                    : run(0, 0);
    return found_;
  }

  size_t begin() const { return pcre2_get_ovector_pointer(match_.get())[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(match_.get())[1]; }
  /// The text of the match (0) and of the expression's groups; "" for one that has none.
  size_t groups() const { return pcre2_get_ovector_count(match_.get()); }
  std::string_view group(size_t number) const {
    const size_t* const ends = pcre2_get_ovector_pointer(match_.get()) + 2 * number;
    return ends[0] == PCRE2_UNSET ? "" : text_.substr(ends[0], ends[1] - ends[0]);
  }

 private:
  bool run(size_t start, uint32_t options) {
    const int result =
        pcre2_match(pattern_, bytes_of(text_), text_.size(), start, options, match_.get(), nullptr);
    SEQCONV_CHECK(
        result >= 0 || result == PCRE2_ERROR_NOMATCH,
        "a glossary cannot be matched: ",
        message_of(result));
    return result >= 0;
  }

  const pcre2_code* pattern_;
  std::string_view text_;
  Match match_;
  bool found_ = false;
};

/// Adds text to a list of parts unless it is empty.
void add_part(std::string_view text, std::vector<std::string>& parts) {
  if (!text.empty())
    parts.emplace_back(text);
}

/// As Python's re.split with the whole expression in a group: what groups of
/// the expression's own hold comes once more.
void split_at_matches(
    const Pattern& pattern, std::string_view text, std::vector<std::string>& parts) {
  Matcher matcher(pattern, text);
  size_t end = 0;
  while (matcher.find_next()) {
    add_part(text.substr(end, matcher.begin() - end), parts);
    for (size_t group = 0; group < matcher.groups(); ++group)
      add_part(matcher.group(group), parts);
    end = matcher.end();
  }
  add_part(text.substr(end), parts);
}

}  // namespace

struct Glossaries::Patterns {
  struct One {
    Pattern inside;  ///< found anywhere
    Pattern whole;   ///< tells a word that is not to be split
  };
  std::vector<One> single;
  Pattern any{nullptr, pcre2_code_free};  ///< one of them, and nothing else
};

Glossaries::Glossaries(const std::vector<std::string>& glossaries)
    : patterns_(std::make_unique<Patterns>()) {
  std::string all, forms;
  for (const std::string& glossary : glossaries) {
    const std::string form = to_pcre2(glossary);
    patterns_->single.push_back({compile(form, glossary), compile("^" + form + "$", glossary)});
    all += (all.empty() ? "" : "|") + glossary;
    forms += (forms.empty() ? "" : "|") + form;
  }
  patterns_->any = compile("^(" + forms + ")$", all);
}

Glossaries::~Glossaries() = default;

std::vector<std::string> Glossaries::isolate(const std::string& word) const {
  std::vector<std::string> parts = {replace_invalid_utf8(word)};
  for (const Patterns::One& glossary : patterns_->single) {
    std::vector<std::string> next;
    for (std::string& part : parts) {
      if (Matcher(glossary.whole, part).matches_at_start())
        next.push_back(std::move(part));
      else
        split_at_matches(glossary.inside, part, next);
    }
    parts = std::move(next);
  }
  return parts;
}

bool Glossaries::is_whole(const std::string& part) const {
  return Matcher(patterns_->any, part).matches_at_start();
}

}  // namespace seqconv::internal
