#include "runtime/history.h"

#include <algorithm>
#include <numeric>

namespace seqconv::internal::runtime {

float* RowLog::add(int64_t step, int64_t rows) {
  const size_t at = slot(step);
  if (at >= steps_.size())
    steps_.resize(at + 1);
  return steps_[at].hold(rows * width_, *kept_);
}

void Ancestry::advance(std::span<const int32_t> parents, int64_t steps) {
  const auto rows = static_cast<int64_t>(parents.size());
  const int64_t next = first_ + steps_;
  bool same = rows == rows_;
  for (int64_t r = 0; same && r < rows; ++r)
    same = parents[static_cast<size_t>(r)] == r;
  const int64_t oldest = reach_ == kAllSteps ? 0 : std::max<int64_t>(0, next - reach_);
  for (int64_t step = oldest; !same && step < next; ++step) {
    Grown<int32_t>& row_of = row_of_[slot(step)];
    old_.assign(row_of.data(), row_of.data() + rows_);
    int32_t* const own = row_of.hold(rows, *kept_);
    for (size_t r = 0; r < parents.size(); ++r)
      own[r] = old_[static_cast<size_t>(parents[r])];
  }
  for (int64_t step = next; step < next + steps; ++step) {
    const size_t at = slot(step);
    if (at >= row_of_.size())
      row_of_.resize(at + 1);
    int32_t* const own = row_of_[at].hold(rows, *kept_);
    std::iota(own, own + rows, 0);
  }
  rows_ = rows;
  steps_ = steps;
  first_ = next;
}

void Ancestry::find(
    const RowLog& log, int64_t step, int64_t row, int64_t count, const float** out) const {
  for (int64_t past = step - count + 1; past <= step; ++past)
    *out++ = log.row(past, row_at(past, row));
}

}  // namespace seqconv::internal::runtime
