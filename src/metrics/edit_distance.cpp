#include "metrics/edit_distance.h"

#include <algorithm>
#include <cmath>

namespace seqconv::internal::metrics {
namespace {

constexpr int64_t kBeam = 25;
// What a cell holds that nothing leads to: more than any distance, and far
// from the largest number, as rows add to it.
constexpr int32_t kFar = 1 << 29;

}  // namespace

EditDistance::EditDistance(size_t hypothesis_length, std::span<const uint32_t> reference)
    : reference_length_(static_cast<int64_t>(reference.size())), reference_(1) {
  reference_.insert(reference_.end(), reference.begin(), reference.end());
  lay_out(hypothesis_length);
  const size_t cells =
      rows_.back().first + static_cast<size_t>(rows_.back().end - rows_.back().begin) + 1;
  kept_.assign(cells, kFar);
  others_.assign(cells, kFar);
  for (int64_t j = 0; j <= reference_length_; ++j)
    kept_[static_cast<size_t>(j) + 1] = static_cast<int32_t>(j);
}

void EditDistance::lay_out(size_t hypothesis_length) {
  const auto n = static_cast<int64_t>(hypothesis_length);
  const int64_t width = reference_length_ + 1;
  const double slope = n == 0 ? 1 : static_cast<double>(reference_length_) / static_cast<double>(n);
  // Steep diagonals want a wider beam, so that each row sees the one above.
  const int64_t beam = static_cast<double>(kBeam) < slope / 2
      ? static_cast<int64_t>(std::ceil(slope / 2 + kBeam))
      : kBeam;
  rows_.push_back({0, width, 0, 0});
  for (int64_t i = 1; i <= n; ++i) {
    const auto middle = static_cast<int64_t>(std::floor(static_cast<double>(i) * slope));
    const int64_t begin = std::max<int64_t>(0, middle - beam);
    const int64_t end = i == n ? width : std::min(width, middle + beam);
    Row& above = rows_.back();
    above.margin = std::max<int64_t>(0, end - above.end);
    const auto cells = static_cast<size_t>(1 + above.end - above.begin + above.margin);
    rows_.push_back({begin, end, 0, above.first + cells});
  }
}

int32_t EditDistance::fill(size_t i, uint32_t word, const int32_t* above, int32_t* cells) const {
  const Row& row = rows_[i];
  // above[0] is the cell above the one left of this row's first.
  above += row.begin - rows_[i - 1].begin;
  const uint32_t* reference = reference_.data() + row.begin;
  const int64_t count = row.end - row.begin;
  int32_t left = cells[0];
  int32_t least = kFar;
  for (int64_t k = 0; k < count; ++k) {
    const int32_t replaced = above[k] + (reference[k] == word ? 0 : 1);
    left = std::min(replaced, std::min(above[k + 1], left) + 1);
    cells[k + 1] = left;
    least = std::min(least, left);
  }
  return least;
}

int32_t EditDistance::last(const std::vector<int32_t>& cells) const {
  const Row& row = rows_.back();
  return cells[row.first + static_cast<size_t>(row.end - row.begin)];
}

int32_t EditDistance::keep(std::span<const uint32_t> words) {
  for (size_t i = 1; i < rows_.size(); ++i)
    fill(i, words[i - 1], kept_.data() + rows_[i - 1].first, kept_.data() + rows_[i].first);
  return last(kept_);
}

int32_t EditDistance::distance(std::span<const uint32_t> words, size_t equal, int32_t limit) {
  const int32_t* above = kept_.data() + rows_[equal].first;
  for (size_t i = equal + 1; i < rows_.size(); ++i) {
    int32_t* cells = others_.data() + rows_[i].first;
    if (const int32_t least = fill(i, words[i - 1], above, cells); least > limit)
      return least;
    above = cells;
  }
  return equal + 1 < rows_.size() ? last(others_) : last(kept_);
}

Alignment EditDistance::align(std::span<const uint32_t> words) const {
  const auto cell = [&](size_t i, int64_t j) {
    const Row& row = rows_[i];
    return kept_[row.first + static_cast<size_t>(j - row.begin + 1)];
  };
  Alignment alignment;
  alignment.of_reference.resize(reference_.size() - 1);
  alignment.reference_wrong.resize(reference_.size() - 1);
  alignment.hypothesis_wrong.resize(words.size());
  size_t i = words.size();
  int64_t j = reference_length_;
  while (i > 0 || j > 0) {
    const auto r = static_cast<size_t>(j);
    const int32_t here = cell(i, j);
    const bool wrong = i == 0 || j == 0 || words[i - 1] != reference_[r];
    if (i > 0 && j > 0 && here == cell(i - 1, j - 1) + (wrong ? 1 : 0)) {
      alignment.hypothesis_wrong[i - 1] = wrong;
    } else if (i > 0 && here == cell(i - 1, j) + 1) {
      alignment.hypothesis_wrong[--i] = true;
      continue;
    } else {
      alignment.of_reference[r - 1] = static_cast<int64_t>(i) - 1;
      alignment.reference_wrong[r - 1] = true;
      --j;
      continue;
    }
    alignment.of_reference[r - 1] = static_cast<int64_t>(i) - 1;
    alignment.reference_wrong[r - 1] = wrong;
    --i;
    --j;
  }
  return alignment;
}

}  // namespace seqconv::internal::metrics
