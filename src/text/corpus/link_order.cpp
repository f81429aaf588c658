#include "text/corpus/link_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace seqconv::internal {
namespace {

constexpr int64_t kNearJumps = 4;  // jumps with a bucket of their own
/// Decides between equal jumps, and is too small to outweigh what was learned.
constexpr double kDistanceWeight = 1e-6;

/// The number of jumps that share a bucket, by its distance from the middle.
int64_t bucket_width(int64_t bucket) {
  return bucket <= kNearJumps ? 1 : kNearJumps << (bucket - kNearJumps - 1);
}

}  // namespace

size_t LinkOrder::bucket(int64_t jump) {
  const int64_t far = std::abs(jump);
  const int64_t distance = far <= kNearJumps
      ? far
      : kNearJumps + std::bit_width(static_cast<uint64_t>((far - 1) / kNearJumps));
  const int64_t own = std::min(distance, kBuckets);
  return static_cast<size_t>(jump < 0 ? kBuckets - own : kBuckets + own);
}

double LinkOrder::log_probability(int64_t jump) const {
  const size_t own = bucket(jump);
  const int64_t wide = bucket_width(std::abs(static_cast<int64_t>(own) - kBuckets));
  // As if each jump of the bucket had come once more than it did.
  return std::log(static_cast<double>(counts_[own] + wide) / static_cast<double>(wide));
}

void LinkOrder::add(const std::vector<Places>& words) {
  const Places* before = nullptr;
  for (const Places& own : words) {
    if (own.empty())
      continue;
    if (before != nullptr && before->size() == 1 && own.size() == 1)
      ++counts_[bucket(own.front() - before->front())];
    before = &own;
  }
}

LinkOrder::Ways LinkOrder::go_on(
    const Places& places, const Places* before, const Ways& ways) const {
  Ways own;
  for (const int64_t place : places) {
    double best = before == nullptr ? 0 : -std::numeric_limits<double>::infinity();
    size_t from = 0;
    for (size_t k = 0; before != nullptr && k < before->size(); ++k)
      if (const double score = ways.scores[k] + log_probability(place - (*before)[k]);
          score > best) {
        best = score;
        from = k;
      }
    own.scores.push_back(best);
    own.from.push_back(from);
  }
  return own;
}

std::vector<int64_t> LinkOrder::choose(const std::vector<Places>& words, int64_t length) const {
  std::vector<size_t> linked;  // words that have places
  std::vector<Ways> ways;      // to the places of each of them
  for (size_t j = 0; j < words.size(); ++j) {
    if (words[j].empty())
      continue;
    ways.push_back(go_on(
        words[j],
        linked.empty() ? nullptr : &words[linked.back()],
        linked.empty() ? Ways() : ways.back()));
    linked.push_back(j);
    for (size_t k = 0; k < words[j].size(); ++k) {
      const double off = static_cast<double>(words[j][k]) / static_cast<double>(length) -
          static_cast<double>(j) / static_cast<double>(words.size());
      ways.back().scores[k] -= kDistanceWeight * std::abs(off);
    }
  }
  std::vector<int64_t> chosen(words.size(), -1);
  size_t at = 0;
  if (!ways.empty())
    at = static_cast<size_t>(
        std::ranges::max_element(ways.back().scores) - ways.back().scores.begin());
  for (size_t n = linked.size(); n-- > 0;) {
    chosen[linked[n]] = words[linked[n]][at];
    at = ways[n].from[at];
  }
  return chosen;
}

}  // namespace seqconv::internal
