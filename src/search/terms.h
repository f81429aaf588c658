#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal {

/// A sentence has at most so many terms, of so many tokens together: more hypotheses are kept for
/// each token.
inline constexpr size_t kMostTerms = 64;
inline constexpr int64_t kMostTermTokens = 128;

/// Tells for each token of a vocabulary how it joins those beside it to words.
struct WordEdges {
  std::vector<bool> open;   ///< a word that it ends with goes on if the next token joins
  std::vector<bool> joins;  ///< it goes on with a word that is open before it

  bool part(int32_t token, int32_t next) const {
    return !open[static_cast<size_t>(token)] || !joins[static_cast<size_t>(next)];
  }
};

}  // namespace seqconv::internal

namespace seqconv::internal::decode {

/// Says which of its terms a hypothesis holds, and how much of one it ends with.
struct TermProgress {
  uint64_t met = 0;    ///< a bit a term
  int32_t begun = -1;  ///< a term whose first tokens it ends with; -1: none
  int32_t tokens = 0;  ///< how many they are
  int32_t last = -1;   ///< its last token; -1: none
  int32_t ended = -1;  ///< a term that is met, and that it ends with; -1: none

  bool operator==(const TermProgress&) const = default;
};

/// The terms of a sentence: runs of tokens, all of which its translation must hold as whole words,
/// one behind another. Equal ones come as often as they are there.
class Terms {
 public:
  Terms() = default;
  /// Error for more than kMostTerms, or kMostTermTokens, and for one without tokens. `edges`: of
  /// the vocabulary's tokens, as long as this lives; null: each is a word.
  explicit Terms(std::vector<std::vector<int32_t>> terms, const WordEdges* edges = nullptr);

  bool empty() const { return terms_.empty(); }
  /// Tokens of all terms.
  int64_t tokens() const { return tokens_; }
  /// Counts the tokens of terms that a hypothesis holds: of whole ones, and of one it has begun.
  int64_t tokens_in(const TermProgress& progress) const;
  bool are_met(const TermProgress& progress) const;

  /// The progress of a hypothesis that goes on with a token. A term that another token breaks off
  /// starts anew, and so does one whose last word another token goes on with; of several that begin
  /// alike the longest is waited for.
  TermProgress follow(TermProgress progress, int32_t token) const;
  /// Appends the tokens that bring a hypothesis further, each once: the next ones of a term that
  /// it has begun, else the first ones of all that are not met.
  void ask(const TermProgress& progress, std::vector<int32_t>& tokens) const;

 private:
  bool is_met(const TermProgress& progress, size_t term) const {
    return (progress.met >> term & 1) != 0;
  }
  bool part(int32_t token, int32_t next) const {
    return token < 0 || edges_ == nullptr || edges_->part(token, next);
  }
  bool meets_some(TermProgress& progress, std::span<const int32_t> run) const;
  size_t leave(TermProgress& progress, std::span<const int32_t> run) const;

  std::vector<std::vector<int32_t>> terms_;
  const WordEdges* edges_ = nullptr;
  int64_t tokens_ = 0;
};

}  // namespace seqconv::internal::decode
