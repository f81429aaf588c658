#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace seqconv::internal {

/// Tells whether a vocabulary has a symbol.
using HasSymbol = std::function<bool(const std::string&)>;

/// Says what applying BPE may do besides merging, as the flags of the same
/// names of subword-nmt's apply-bpe.
struct BpeOptions {
  /// Follows every piece of a word but the last one.
  std::string separator = "@@";
  /// Regular expressions as PCRE2 reads them: what they match in a word is a
  /// piece of its own, which no merge changes.
  std::vector<std::string> glossaries;
  /// The vocabulary, of pieces with the separator behind them but for a word's
  /// last. Pieces that it lacks are taken apart again as they were merged until
  /// it has them or nothing is left to undo. Null: no vocabulary.
  HasSymbol vocabulary;
  /// Counts the lines of the codes that are used, the first ones; -1 for all.
  int64_t merges = -1;
  /// BPE dropout (Provilkov et al. 2020): each place of a word at which a merge
  /// could be made is passed over with this probability, anew for each merge;
  /// from 0, none, to 1, characters. Equal words differ, and texts depend on
  /// the order of calls.
  double dropout = 0;
  /// Seed of its random numbers, which are Python's.
  uint32_t seed = 1;
};

/// The vocabulary that a file lists, "piece count" a line, of the pieces that
/// come `threshold` times or more. Null, with a warning, where none does:
/// subword-nmt then goes without. Errors name file and line.
HasSymbol read_bpe_vocabulary(const std::filesystem::path& file, int64_t threshold);

class Glossaries;  // src/text/glossaries.h

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

  /// The usual separator.
  static constexpr std::string_view kJoiner = "@@";

  /// Reads a codes file. Errors name file and line, or the glossary that is no
  /// regular expression (UsageError).
  static Bpe load(const std::filesystem::path& path, BpeOptions options = {});
  /// Reads the text of a codes file; `name` is for messages.
  static Bpe parse(std::string_view text, const std::string& name, BpeOptions options = {});

  /// Pieces of one word, without separators and whatever the glossaries. Time
  /// is O(n log n) in its length, with dropout O(n^2).
  std::vector<std::string> segment_word(std::string_view word) const;
  /// Pieces of words, the separator after each but a word's last. Words seen
  /// before come from a cache of some 32 MB at most; safe to call from several
  /// threads, none of which waits for another.
  std::vector<std::string> segment_words(const std::vector<std::string_view>& words) const;
  /// Text with each word (split at blanks) in pieces joined by "@@ ", byte for
  /// byte what subword-nmt's apply-bpe writes. Lines end as in split_lines, and
  /// what ends one stays: CR and LF behind the last word, the others in it.
  /// Blanks around a line stay, runs of blanks inside become one.
  std::string segment_line(std::string_view line) const;

  /// The text of the codes file.
  const std::string& codes() const { return codes_; }
  int64_t merges() const { return static_cast<int64_t>(pairs_.size()); }

 private:
  static constexpr std::string_view kEndOfWord = "</w>";
  struct Merge {
    int32_t rank;
    int32_t result;
  };
  /// A line of the codes, as text.
  using Pair = std::pair<std::string, std::string>;
  struct Piece;
  struct Cache;
  class Merger;

  explicit Bpe(BpeOptions options);
  int32_t intern(const std::string& symbol);
  int32_t find_symbol(const std::string& symbol) const;
  void add_merge(const Pair& pair);
  void remember_parts(const std::vector<Pair>& merges);
  std::vector<Piece> initial_pieces(std::string_view word) const;
  std::vector<std::string> split_word(std::string_view word) const;
  std::vector<std::string> merge(std::string_view word) const;
  void merge_with_dropout(std::vector<Piece>& pieces) const;
  std::vector<std::string> keep_to_vocabulary(const std::vector<std::string>& pieces) const;
  void split_again(std::string piece, bool last, std::vector<std::string>& out) const;
  std::vector<std::string> segment_with_separators(const std::string& word) const;
  std::string segment_one_line(std::string_view line) const;

  BpeOptions options_;
  std::string codes_;
  bool end_is_a_symbol_ = false;  ///< version 0.1
  int32_t lines_ = 0;
  std::unordered_map<std::string, int32_t> symbols_;
  std::unordered_map<uint64_t, Merge> pairs_;
  /// With a vocabulary: what each symbol was merged of.
  std::unordered_map<std::string, Pair> parts_;
  std::unique_ptr<Glossaries> glossaries_;  ///< null without any
  std::unique_ptr<Cache> cache_;
};

/// "@@ " taken out again: the words of a line of pieces.
std::string join_bpe(std::string_view line);

}  // namespace seqconv::internal
