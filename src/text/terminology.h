#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/rooted_path.h"
#include "seqconv/requests.h"

namespace seqconv::internal {

/// A term in a text: bytes from `begin` to before `end`, and how it is translated.
struct TermInText {
  size_t begin = 0;
  size_t end = 0;
  std::string_view target;

  bool operator==(const TermInText&) const = default;
};

/// Terms of a source language with their translations. Safe to use from several threads.
///
/// A term is found as whole words; scripts that are written without blanks have no words. A source
/// without capitals is found in any case, one with capitals as it is spelled; white space is one
/// blank.
class Terminology {
 public:
  Terminology() = default;
  /// Error for a term with an empty side, or with one that is not UTF-8 or has a tab or a line
  /// end, and for two translations of one source. `where`: of the terms, for messages.
  explicit Terminology(std::vector<Term> terms, const std::string& where = "terms");

  /// Reads a file of lines "SOURCE<tab>TARGET", packed or not; blank lines are left out. Errors
  /// name file and line.
  static Terminology load(const RootedPath& file);

  bool empty() const { return terms_.empty(); }
  size_t size() const { return terms_.size(); }
  /// The terms in a line of UTF-8 from left to right; where several begin at a place, the longest.
  /// Views are valid as long as this. Takes time in proportion to the line and to the length of
  /// terms that begin with words of it, but not to how many they are.
  std::vector<TermInText> find(std::string_view line) const;

 private:
  using BySpelling = std::unordered_map<std::string, size_t>;

  void add(const Term& term, size_t number, const std::string& where);
  size_t longest_at(std::string_view line, size_t at, size_t& term) const;

  std::vector<Term> terms_;
  BySpelling as_spelled_;  // sources with capitals, white space as one blank
  BySpelling any_case_;    // folded sources of small letters
  /// Most words, and characters between them, of the terms with a folded first word.
  BySpelling most_parts_;
};

/// Reads the lines of a file, as of Terminology::load.
std::vector<Term> read_terms(const RootedPath& file);

/// The members of a JSON object {SOURCE: TARGET}. Error behind `where` for anything else.
std::vector<Term> terms_in(const Json& object, const std::string& where);

/// Terms of a text by two terminologies: those of `first`, and those of `second` that lie beside
/// them.
std::vector<TermInText> find_terms(
    std::string_view line, const Terminology& first, const Terminology& second);

}  // namespace seqconv::internal
