#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace seqconv {

/// Byte-pair encoding as subword-nmt applies it (Sennrich et al. 2016).
///
/// Codes files: subword-nmt's versions 0.2 ("#version: 0.2", "</w>" belongs to
/// a word's last character) and 0.1 (no header, "</w>" is a symbol of its own),
/// and fastBPE's (no header, a third column with counts, "</w>" as in 0.2).
class Bpe {
 public:
  Bpe(Bpe&& other) noexcept;
  Bpe& operator=(Bpe&& other) noexcept;
  ~Bpe();

  /// What follows every piece of a word but the last one.
  static constexpr std::string_view kJoiner = "@@";

  /// Reads a codes file. Errors name file and line.
  static Bpe load(const std::filesystem::path& path);
  /// Reads the text of a codes file; `name` is for messages.
  static Bpe parse(std::string_view text, const std::string& name);

  /// Pieces of one word, without joiners. Time is O(n log n) in its length.
  std::vector<std::string> segment_word(std::string_view word) const;
  /// Pieces of words, with the joiner after each piece but a word's last. Words
  /// seen before come from a cache; safe to call from several threads.
  std::vector<std::string> segment_words(
      const std::vector<std::string_view>& words) const;
  /// A line with each word (split at blanks) in pieces joined by "@@ ".
  /// Leading and trailing blanks stay, runs of blanks inside become one.
  std::string segment_line(std::string_view line) const;

  /// The text of the codes file.
  const std::string& codes() const { return codes_; }
  int64_t merges() const { return static_cast<int64_t>(pairs_.size()); }

 private:
  struct Merge {
    int32_t rank;
    int32_t result;
  };
  struct Piece;
  struct Cache;
  class Merger;

  Bpe();
  int32_t intern(const std::string& symbol);
  int32_t find_symbol(const std::string& symbol) const;
  void add_merge(const std::string& left, const std::string& right);
  std::vector<Piece> initial_pieces(std::string_view word) const;

  std::string codes_;
  bool end_is_a_symbol_ = false;  ///< version 0.1
  int32_t lines_ = 0;
  std::unordered_map<std::string, int32_t> symbols_;
  std::unordered_map<uint64_t, Merge> pairs_;
  std::unique_ptr<Cache> cache_;
};

/// "@@ " taken out again: the words of a line of pieces.
std::string join_bpe(std::string_view line);

}  // namespace seqconv
