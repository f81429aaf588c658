#include "text/corpus/word_aligner.h"

#include <algorithm>
#include <cmath>

namespace seqconv::internal {
namespace {

/// A word is no translation of another below this.
constexpr float kLeast = 1e-4F;
/// Words that one direction alone takes for translations must be that probable in both: a
/// word without translation, which comes with many, would else be linked to one.
constexpr float kLeastInBoth = 0.1F;

using Ids = std::span<const int32_t>;

float probability(const std::vector<WordProbability>& row, int32_t word) {
  const auto found = std::ranges::lower_bound(row, word, {}, &WordProbability::word);
  return found != row.end() && found->word == word ? found->probability : 0;
}

/// The place in `from` of the word that most probably makes each word of `to`; -1: none.
std::vector<int64_t> best_places(
    const std::vector<std::vector<WordProbability>>& rows, Ids from, Ids to) {
  std::vector<int64_t> places;
  const auto distance = [&](size_t i, size_t j) {
    return std::abs(
        static_cast<double>(i) / static_cast<double>(from.size()) -
        static_cast<double>(j) / static_cast<double>(to.size()));
  };
  for (size_t j = 0; j < to.size(); ++j) {
    int64_t best = -1;
    float most = kLeast;
    for (size_t i = 0; i < from.size(); ++i) {
      const float own = probability(rows[static_cast<size_t>(from[i])], to[j]);
      const bool nearer =
          own == most && best >= 0 && distance(i, j) < distance(static_cast<size_t>(best), j);
      if (own <= most && !nearer)
        continue;
      most = own;
      best = static_cast<int64_t>(i);
    }
    places.push_back(best);
  }
  return places;
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

void WordAligner::add(Ids source, Ids target) {
  to_target_.add(source, target);
  to_source_.add(target, source);
}

void WordAligner::learn(int64_t iterations) {
  target_rows_ = to_target_.learn(iterations);
  source_rows_ = to_source_.learn(iterations);
}

std::vector<AlignedTokens> WordAligner::align(Ids source, Ids target) const {
  const auto is_probable = [&](int64_t s, int64_t t) {
    const int32_t from = source[static_cast<size_t>(s)], to = target[static_cast<size_t>(t)];
    return probability(target_rows_[static_cast<size_t>(from)], to) >= kLeastInBoth &&
        probability(source_rows_[static_cast<size_t>(to)], from) >= kLeastInBoth;
  };
  Grid grid(source.size(), target.size());
  const std::vector<int64_t> of_target = best_places(target_rows_, source, target);
  const std::vector<int64_t> of_source = best_places(source_rows_, target, source);
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
