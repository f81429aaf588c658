#include "token_batches.h"

#include <algorithm>
#include <numeric>

namespace seqconv {

std::vector<std::vector<size_t>> group_by_tokens(
    const std::vector<int64_t>& lengths,
    int64_t max_tokens) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lengths[a] > lengths[b];
  });
  std::vector<std::vector<size_t>> groups;
  for (size_t item : order) {
    const bool fits = !groups.empty() &&
        static_cast<int64_t>(groups.back().size() + 1) *
                lengths[groups.back().front()] <=
            max_tokens;
    if (!fits)
      groups.emplace_back();
    groups.back().push_back(item);
  }
  return groups;
}

}  // namespace seqconv
