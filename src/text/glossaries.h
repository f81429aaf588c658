#pragma once

#include <memory>
#include <string>
#include <vector>

namespace seqconv::internal {

/// subword-nmt's glossaries: regular expressions (Python's, read by PCRE2 over UTF-8) for
/// what BPE leaves whole. Safe to use from several threads.
class Glossaries {
 public:
  /// UsageError naming the glossary that is no regular expression.
  explicit Glossaries(const std::vector<std::string>& glossaries);
  ~Glossaries();

  /// The parts of a word: what glossaries match, and what is between. A word
  /// that one matches as a whole is one part.
  std::vector<std::string> isolate(const std::string& word) const;
  /// Tells whether one of the glossaries matches all of the part.
  bool is_whole(const std::string& part) const;

 private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace seqconv::internal
