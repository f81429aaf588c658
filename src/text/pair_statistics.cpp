#include "text/pair_statistics.h"

#include <algorithm>

#include "base/characters.h"
#include "base/utf8.h"

namespace seqconv::internal {

PairStatistics::PairStatistics(
    std::unordered_map<SymbolPair, int64_t, SymbolPairHash> counts, Less less)
    : small_(std::move(counts)), large_(small_), less_(std::move(less)) {
  if (!empty())
    threshold_ = static_cast<double>(search().frequency) / 10;
}

PairStatistics::Best PairStatistics::search() const {
  auto best = small_.begin();
  for (auto entry = std::next(best); entry != small_.end(); ++entry)
    if (entry->second > best->second ||
        (entry->second == best->second && less_(best->first, entry->first)))
      best = entry;
  return {best->first, best->second};
}

PairStatistics::Best PairStatistics::most_frequent(int64_t round) {
  if (!small_.empty()) {
    const Best best = search();
    if (round == 0 || static_cast<double>(best.frequency) >= threshold_)
      return best;
  }
  prune();
  small_ = large_;
  const Best best = search();
  const auto i = static_cast<double>(round);
  threshold_ = static_cast<double>(best.frequency) * i / (i + 10000.0);
  prune();
  return best;
}

void PairStatistics::prune() {
  for (auto entry = small_.begin(); entry != small_.end();) {
    if (static_cast<double>(entry->second) >= threshold_) {
      ++entry;
      continue;
    }
    if (entry->second < 0)
      large_[entry->first] += entry->second;
    else
      large_[entry->first] = entry->second;
    entry = small_.erase(entry);
  }
}

void PairStatistics::end_round(const SymbolPair& merged, int64_t round) {
  set_zero(merged);
  if (round % 100 == 0)
    prune();
}

BpeVocabulary::BpeVocabulary(const WordCounts& counts) {
  for (const auto& [text, count] : counts) {
    const auto characters = split_characters(text);
    Word word;
    word.count = count;
    for (size_t i = 0; i < characters.size(); ++i) {
      std::string symbol(characters[i]);
      size_t position = 0;
      word.odd_space |= is_space(next_code_point(symbol, position));
      if (i + 1 == characters.size())
        symbol += "</w>";
      word.symbols.push_back(intern(symbol));
    }
    words_.push_back(std::move(word));
  }
}

int32_t BpeVocabulary::intern(const std::string& text) {
  const auto next = static_cast<int32_t>(texts_.size());
  const auto [entry, is_new] = numbers_.emplace(text, next);
  if (is_new)
    texts_.push_back(text);
  return entry->second;
}

PairStatistics BpeVocabulary::count_pairs() {
  std::unordered_map<SymbolPair, int64_t, SymbolPairHash> counts;
  for (size_t w = 0; w < words_.size(); ++w) {
    const Symbols& symbols = words_[w].symbols;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const SymbolPair pair(symbols[i], symbols[i + 1]);
      counts[pair] += words_[w].count;
      ++places_[pair][static_cast<int32_t>(w)];
    }
  }
  const auto less = [this](const SymbolPair& a, const SymbolPair& b) {
    const int first = text(a.first).compare(text(b.first));
    return first != 0 ? first < 0 : text(a.second) < text(b.second);
  };
  return PairStatistics(std::move(counts), less);
}

void BpeVocabulary::merge(const SymbolPair& pair, PairStatistics& statistics) {
  const int32_t merged = intern(text(pair.first) + text(pair.second));
  const Places places = std::exchange(places_[pair], {});
  statistics.set_zero(pair);
  for (const auto& [number, times] : places) {
    if (times < 1)
      continue;
    Word& word = words_[static_cast<size_t>(number)];
    Symbols symbols = word.odd_space ? replace_in_text(word, pair) : replace(word, pair, merged);
    const Symbols old = std::exchange(word.symbols, std::move(symbols));
    forget_old(number, old, pair, statistics);
    count_new(number, merged, statistics);
  }
}

BpeVocabulary::Symbols BpeVocabulary::replace(
    const Word& word, const SymbolPair& pair, int32_t merged) {
  const Symbols& old = word.symbols;
  Symbols out;
  out.reserve(old.size());
  for (size_t i = 0; i < old.size(); ++i) {
    const bool here = i + 1 < old.size() && old[i] == pair.first && old[i + 1] == pair.second;
    out.push_back(here ? merged : old[i]);
    i += here;
  }
  return out;
}

/// subword-nmt replaces in the text of the blank-separated symbols and takes
/// any white space for the end of a symbol, so that a symbol which holds a
/// no-break space, say, can be cut there.
BpeVocabulary::Symbols BpeVocabulary::replace_in_text(const Word& word, const SymbolPair& pair) {
  std::string joined;
  for (int32_t symbol : word.symbols)
    joined += (joined.empty() ? "" : " ") + text(symbol);
  const std::string wanted = text(pair.first) + " " + text(pair.second);
  const auto characters = split_characters(joined);
  const auto is_edge = [&](std::string_view character) {
    size_t position = 0;
    return is_space(next_code_point(character, position));
  };
  std::string replaced;
  for (size_t c = 0; c < characters.size();) {
    const auto begin = static_cast<size_t>(characters[c].data() - joined.data());
    const size_t end = begin + wanted.size();
    size_t after = c;
    while (after < characters.size() && characters[after].data() < joined.data() + end)
      ++after;
    if (joined.compare(begin, wanted.size(), wanted) == 0 &&
        (c == 0 || is_edge(characters[c - 1])) &&
        (after == characters.size() || is_edge(characters[after]))) {
      replaced += text(pair.first) + text(pair.second);
      c = after;
    } else {
      replaced += characters[c++];
    }
  }
  Symbols out;
  for (size_t start = 0; start <= replaced.size();) {
    const size_t blank = std::min(replaced.find(' ', start), replaced.size());
    out.push_back(intern(replaced.substr(start, blank - start)));
    start = blank + 1;
  }
  return out;
}

void BpeVocabulary::forget_old(
    int32_t word_number, const Symbols& old, const SymbolPair& pair, PairStatistics& statistics) {
  const int64_t count = words_[static_cast<size_t>(word_number)].count;
  const auto forget = [&](size_t i) {
    const SymbolPair gone(old[i], old[i + 1]);
    statistics.add(gone, -count);
    --places_[gone][word_number];
  };
  for (size_t i = 0; i + 1 < old.size();) {
    if (old[i] != pair.first || old[i + 1] != pair.second) {
      ++i;
      continue;
    }
    if (i > 0)
      forget(i - 1);
    // In A B C B C the pair (C, B) is forgotten by the second B C.
    const bool another =
        i + 3 < old.size() && old[i + 2] == pair.first && old[i + 3] == pair.second;
    if (i + 2 < old.size() && !another)
      forget(i + 1);
    i += 2;
  }
}

void BpeVocabulary::count_new(int32_t word_number, int32_t merged, PairStatistics& statistics) {
  const Word& word = words_[static_cast<size_t>(word_number)];
  const Symbols& symbols = word.symbols;
  const auto count = [&](size_t i) {
    const SymbolPair pair(symbols[i], symbols[i + 1]);
    statistics.add(pair, word.count);
    ++places_[pair][word_number];
  };
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] != merged)
      continue;
    if (i > 0)
      count(i - 1);
    // In A BC BC the second BC counts the pair (BC, BC).
    if (i + 1 < symbols.size() && symbols[i + 1] != merged)
      count(i);
  }
}

}  // namespace seqconv::internal
