#include "text/corpus/word_aligner.h"

#include <algorithm>
#include <utility>

namespace seqconv::internal {
namespace {

/// A word is no translation of another below this.
constexpr float kLeast = 1e-4F;
/// Words that one direction alone takes for translations must be that probable in both: a
/// word without translation, which comes with many, would else be linked to one.
constexpr float kLeastInBoth = 0.1F;

/// About so many pairs tell the order of words.
constexpr int64_t kOrderPairs = 5000;

using Ids = std::span<const int32_t>;

float probability(const std::vector<WordProbability>& row, int32_t word) {
  // A binary search without jumps, which the processor would guess wrong half the time.
  const WordProbability* at = row.data();
  for (size_t left = row.size(); left > 1;) {
    const size_t half = left / 2;
    at += at[half - 1].word < word ? half : 0;
    left -= half;
  }
  return !row.empty() && at->word == word ? at->probability : 0;
}

/// The places in `from` of the word that most probably makes each word of `to`.
std::vector<Places> best_places(
    const std::vector<std::vector<WordProbability>>& rows, Ids from, Ids to) {
  std::vector<Places> places(to.size());
  std::vector<float> most(to.size(), kLeast);
  for (size_t i = 0; i < from.size(); ++i) {  // outside: the cache holds its row
    const std::vector<WordProbability>& row = rows[static_cast<size_t>(from[i])];
    for (size_t j = 0; j < to.size(); ++j) {
      const float own = probability(row, to[j]);
      if (own > most[j])
        places[j].clear();
      most[j] = std::max(most[j], own);
      if (own == most[j] && own > kLeast)
        places[j].push_back(static_cast<int64_t>(i));
    }
  }
  return places;
}

/// Probabilities that matter.
std::vector<std::vector<WordProbability>> learn_rows(const IbmModel1& model, int64_t iterations) {
  auto rows = model.learn(iterations);
  for (auto& row : rows) {
    std::erase_if(row, [](const WordProbability& entry) { return entry.probability <= kLeast; });
    row.shrink_to_fit();
  }
  return rows;
}

/// Links of a pair, grown from those of both directions.
class Grid {
 public:
  Grid(size_t sources, size_t targets)
      : sources_(static_cast<int64_t>(sources)),
        targets_(static_cast<int64_t>(targets)),
        votes_(sources * targets, 0),
        linked_(sources * targets, false),
        of_source_(sources, false),
        of_target_(targets, false) {}

  void vote(int64_t source, int64_t target) { ++votes_[at(source, target)]; }

  std::vector<AlignedTokens> grow() {
    link_if([&](int64_t s, int64_t t) { return votes_[at(s, t)] == 2; });
    // Neighbours of links, of which a side has none yet.
    while (link_if([&](int64_t s, int64_t t) {
      return votes_[at(s, t)] > 0 && !(of(of_source_, s) && of(of_target_, t)) &&
          has_neighbour(s, t);
    })) {}
    link_if([&](int64_t s, int64_t t) {
      return votes_[at(s, t)] > 0 && !of(of_source_, s) && !of(of_target_, t);
    });
    std::vector<AlignedTokens> links;
    for (int64_t s = 0; s < sources_; ++s)
      for (int64_t t = 0; t < targets_; ++t)
        if (linked_[at(s, t)])
          links.push_back({s, t});
    return links;
  }

 private:
  size_t at(int64_t source, int64_t target) const {
    return static_cast<size_t>(source * targets_ + target);
  }
  static bool of(const std::vector<bool>& words, int64_t i) {
    return words[static_cast<size_t>(i)];
  }

  bool has_neighbour(int64_t source, int64_t target) const {
    for (int64_t s = std::max<int64_t>(source - 1, 0); s <= std::min(source + 1, sources_ - 1); ++s)
      for (int64_t t = std::max<int64_t>(target - 1, 0); t <= std::min(target + 1, targets_ - 1);
           ++t)
        if (linked_[at(s, t)])
          return true;
    return false;
  }

  /// Links what `wanted` says, place by place; true where something is new.
  template <class Wanted>
  bool link_if(const Wanted& wanted) {
    bool any = false;
    for (int64_t s = 0; s < sources_; ++s)
      for (int64_t t = 0; t < targets_; ++t) {
        if (linked_[at(s, t)] || !wanted(s, t))
          continue;
        linked_[at(s, t)] = any = true;
        of_source_[static_cast<size_t>(s)] = of_target_[static_cast<size_t>(t)] = true;
      }
    return any;
  }

  int64_t sources_;
  int64_t targets_;
  std::vector<uint8_t> votes_;  // [sources, targets]: of how many directions
  std::vector<bool> linked_;    // the same
  std::vector<bool> of_source_;
  std::vector<bool> of_target_;
};

}  // namespace

WordAligner::WordAligner(int64_t source_words, int64_t target_words)
    : to_target_(source_words, target_words), to_source_(target_words, source_words) {}

bool WordAligner::add(Ids source, Ids target) {
  const int64_t products = std::ssize(source) * std::ssize(target);
  if (products_ + products > kMostProducts)
    return false;
  to_target_.add(source, target);
  to_source_.add(target, source);
  products_ += products;
  return true;
}

void WordAligner::learn(int64_t iterations) {
  target_rows_ = learn_rows(to_target_, iterations);
  source_rows_ = learn_rows(to_source_, iterations);
  const int64_t stride = to_target_.pairs() / kOrderPairs + 1;
  for (int64_t pair = 0; pair < to_target_.pairs(); pair += stride) {
    const Ids source = to_target_.source(pair), target = to_target_.target(pair);
    source_order_.add(best_places(target_rows_, source, target));
    target_order_.add(best_places(source_rows_, target, source));
  }
  const auto words = [](const Rows& rows) { return std::ssize(rows); };
  to_target_ = IbmModel1(words(target_rows_), words(source_rows_));
  to_source_ = IbmModel1(words(source_rows_), words(target_rows_));
}

std::vector<AlignedTokens> WordAligner::align(Ids source, Ids target) const {
  const auto is_probable = [&](int64_t s, int64_t t) {
    const int32_t from = source[static_cast<size_t>(s)], to = target[static_cast<size_t>(t)];
    return probability(target_rows_[static_cast<size_t>(from)], to) >= kLeastInBoth &&
        probability(source_rows_[static_cast<size_t>(to)], from) >= kLeastInBoth;
  };
  Grid grid(source.size(), target.size());
  const std::vector<int64_t> of_target =
      source_order_.choose(best_places(target_rows_, source, target), std::ssize(source));
  const std::vector<int64_t> of_source =
      target_order_.choose(best_places(source_rows_, target, source), std::ssize(target));
  const auto vote = [&](int64_t s, int64_t t) {
    const bool agreed =
        of_target[static_cast<size_t>(t)] == s && of_source[static_cast<size_t>(s)] == t;
    if (agreed || is_probable(s, t))
      grid.vote(s, t);
  };
  for (int64_t t = 0; t < std::ssize(target); ++t)
    if (const int64_t s = of_target[static_cast<size_t>(t)]; s >= 0)
      vote(s, t);
  for (int64_t s = 0; s < std::ssize(source); ++s)
    if (const int64_t t = of_source[static_cast<size_t>(s)]; t >= 0)
      vote(s, t);
  return grid.grow();
}

}  // namespace seqconv::internal
