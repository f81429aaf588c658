#include "base/error.h"

#include <algorithm>
#include <numeric>

namespace seqconv::internal {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string shorten(std::string_view text) {
  constexpr size_t kMost = 200;
  if (text.size() <= kMost)
    return std::string(text);
  size_t end = kMost;
  while (end > 0 && (text[end] & 0xC0) == 0x80)
    --end;
  return concat(text.substr(0, end), "...");
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // A word of which nothing is left is no misspelling.
  const size_t size = word.size();
  const size_t most = std::max(std::min<size_t>(2, size - (size > 0)), size / 2);
  size_t best_distance = most + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > size + most || candidate.size() + most < size)
      continue;  // so far apart already, and words may be hostile
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace seqconv::internal
