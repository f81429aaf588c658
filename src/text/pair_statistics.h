#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/bpe_trainer.h"

/// Counts what learn_bpe asks for. subword-nmt keeps approximate books in some
/// corners: it prunes rare pairs from its table and merges the tables again
/// later, and it matches symbols by their text, also when the same text came
/// from other merges. The same codes need the same books, so they are kept in
/// its way.
namespace seqconv::internal {

/// Two neighbouring symbols, as numbers of a BpeVocabulary.
using SymbolPair = std::pair<int32_t, int32_t>;

struct SymbolPairHash {
  size_t operator()(const SymbolPair& pair) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32 |
        static_cast<uint32_t>(pair.second);
    return (key * 0x9e3779b97f4a7c15ULL) >> 16;
  }
};

/// Frequencies of pairs: a small table of frequent ones that most_frequent()
/// searches, and a large one of those below a threshold.
class PairStatistics {
 public:
  /// Orders pairs by their text; "less" breaks ties of frequency.
  using Less = std::function<bool(const SymbolPair&, const SymbolPair&)>;
  struct Best {
    SymbolPair pair;
    int64_t frequency;
  };

  PairStatistics(std::unordered_map<SymbolPair, int64_t, SymbolPairHash> counts, Less less);

  bool empty() const { return large_.empty(); }
  void add(const SymbolPair& pair, int64_t n) { small_[pair] += n; }
  void set_zero(const SymbolPair& pair) { small_[pair] = 0; }
  /// The pair to merge in round `round`, from 0.
  Best most_frequent(int64_t round);
  void end_round(const SymbolPair& merged, int64_t round);

 private:
  Best search() const;
  void prune();

  std::unordered_map<SymbolPair, int64_t, SymbolPairHash> small_;
  std::unordered_map<SymbolPair, int64_t, SymbolPairHash> large_;
  Less less_;
  double threshold_ = 0;
};

/// The words of the training text as symbols, and where each pair occurs.
class BpeVocabulary {
 public:
  explicit BpeVocabulary(const WordCounts& counts);

  PairStatistics count_pairs();
  const std::string& text(int32_t symbol) const { return texts_[static_cast<size_t>(symbol)]; }
  /// Replaces the pair by its union everywhere and keeps `statistics` up.
  void merge(const SymbolPair& pair, PairStatistics& statistics);

 private:
  using Symbols = std::vector<int32_t>;
  struct Word {
    Symbols symbols;
    int64_t count = 0;
    bool odd_space = false;  ///< holds white space other than a blank
  };
  /// The number of times that a pair comes in word number `first`.
  using Places = std::unordered_map<int32_t, int32_t>;

  int32_t intern(const std::string& text);
  Symbols replace(const Word& word, const SymbolPair& pair, int32_t merged);
  Symbols replace_in_text(const Word& word, const SymbolPair& pair);
  void forget_old(
      int32_t word_number, const Symbols& old, const SymbolPair& pair, PairStatistics& statistics);
  void count_new(int32_t word_number, int32_t merged, PairStatistics& statistics);

  std::vector<std::string> texts_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<Word> words_;
  std::unordered_map<SymbolPair, Places, SymbolPairHash> places_;
};

}  // namespace seqconv::internal
