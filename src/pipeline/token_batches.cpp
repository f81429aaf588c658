#include "pipeline/token_batches.h"

#include <algorithm>
#include <numeric>

namespace seqconv::internal {
namespace {

/// The limit that cuts all items into as many groups as workers have to do, or
/// a multiple of that: one group more would leave the others waiting for it.
int64_t limit_of_shares(const std::vector<int64_t>& lengths, int64_t max_tokens, int64_t workers) {
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (workers <= 1 || total <= 1 || max_tokens <= 1)
    return max_tokens;
  const auto parts = [&](int64_t part) { return (total - 1) / part + 1; };
  const int64_t rounds = (parts(max_tokens) - 1) / workers + 1;
  return std::min(max_tokens, parts(rounds * workers));
}

}  // namespace

std::vector<std::vector<size_t>> group_by_tokens(
    const std::vector<int64_t>& lengths, int64_t max_tokens, int64_t workers, int64_t most_items) {
  const int64_t limit = limit_of_shares(lengths, max_tokens, workers);
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<size_t>> groups;
  for (size_t item : order) {
    const bool fits = !groups.empty() && std::ssize(groups.back()) < most_items &&
        static_cast<int64_t>(groups.back().size() + 1) * lengths[groups.back().front()] <= limit;
    if (!fits)
      groups.emplace_back();
    groups.back().push_back(item);
  }
  return groups;
}

int64_t most_items_of(int64_t items, int64_t workers) {
  if (workers <= 1 || items <= 1)
    return std::numeric_limits<int64_t>::max();
  const auto groups_each = [&](int64_t of_items) { return (items - 1) / (workers * of_items) + 1; };
  const int64_t each = std::max(groups_each(256), std::min<int64_t>(groups_each(64), 8));
  return (items - 1) / (workers * each) + 1;
}

}  // namespace seqconv::internal
