#include "kernels/common/prefetch.h"

namespace seqconv::kernels {

void PrefetchRows::add_bytes(
    const char* first,
    int64_t stride,
    int64_t bytes,
    int64_t rows) {
  // Fetching is never needed: what finds no room is left out.
  if (rows <= 0 || count_ == kMaxTensors)
    return;
  // A line more where rows begin anywhere in one.
  const auto begin = static_cast<int64_t>(
      reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(kCacheLine));
  const int64_t shift = stride % kCacheLine == 0 ? begin : kCacheLine - 1;
  tensors_[static_cast<size_t>(count_++)] = {
      first,
      stride,
      (shift + bytes + kCacheLine - 1) / kCacheLine,
      rows};
}

PrefetchRows PrefetchRows::part(int64_t part, int64_t parts) const {
  PrefetchRows some;
  for (int n = 0; n < count_; ++n) {
    Rows of = tensors_[static_cast<size_t>(n)];
    const int64_t line = of.lines * part / parts;
    of.lines = of.lines * (part + 1) / parts - line;
    of.first += line * kCacheLine;
    some.tensors_[static_cast<size_t>(some.count_++)] = of;
  }
  return some;
}

}  // namespace seqconv::kernels
