#include "kernels/fetch_ahead.h"

#include <algorithm>

namespace seqconv::kernels {
namespace {

/// Fetches rows of `times` * kLines lines.
template <int kLines, int64_t kLine>
void fetch(const char* row, int64_t stride, int64_t rows, int64_t times) {
  for (int64_t r = 0; r < rows; ++r, row += stride)
    for (int64_t n = 0; n < times; ++n)
#pragma GCC unroll 8
      for (int i = 0; i < kLines; ++i)
        __builtin_prefetch(
            row + (n * kLines + i) * kLine,
            /*write=*/0,
            /*locality=*/2);
}

}  // namespace

void FetchAhead::add_bytes(
    const char* first,
    int64_t stride,
    int64_t bytes,
    int64_t rows) {
  // Fetching is never needed: what finds no room is left out.
  if (rows <= 0 || count_ == kMostTensors)
    return;
  // A line more where rows begin anywhere in one.
  const auto begin = static_cast<int64_t>(
      reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(kLine));
  const int64_t shift = stride % kLine == 0 ? begin : kLine - 1;
  tensors_[static_cast<size_t>(count_++)] = {
      first,
      stride,
      (shift + bytes + kLine - 1) / kLine,
      rows};
}

FetchAhead FetchAhead::part(int64_t part, int64_t parts) const {
  FetchAhead some;
  for (int n = 0; n < count_; ++n) {
    Rows of = tensors_[static_cast<size_t>(n)];
    const int64_t line = of.lines * part / parts;
    of.lines = of.lines * (part + 1) / parts - line;
    of.first += line * kLine;
    some.tensors_[static_cast<size_t>(some.count_++)] = of;
  }
  return some;
}

void FetchAhead::rows(int64_t first, int64_t count, int64_t part, int64_t parts)
    const {
  for (int n = 0; n < count_; ++n) {
    const Rows& of = tensors_[static_cast<size_t>(n)];
    const char* const row = of.first + first * of.stride;
    const int64_t rows = std::min(count, of.rows - first);
    if (parts > 1) {
      const int64_t line = of.lines * part / parts;
      fetch<1, kLine>(
          row + line * kLine,
          of.stride,
          rows,
          of.lines * (part + 1) / parts - line);
    } else if (of.lines == 4)
      fetch<4, kLine>(row, of.stride, rows, 1);
    else if (of.lines == 3)
      fetch<3, kLine>(row, of.stride, rows, 1);
    else
      fetch<1, kLine>(row, of.stride, rows, of.lines);
  }
}

}  // namespace seqconv::kernels
