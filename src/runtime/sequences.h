#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seqconv::internal::runtime {

/// Sequences whose rows lie one after the other, without padding.
struct Sequences {
  std::vector<int64_t> begin = {0};  ///< [B + 1]: first rows, and the end

  void add(int64_t length) { begin.push_back(begin.back() + length); }
  int64_t count() const { return static_cast<int64_t>(begin.size()) - 1; }
  int64_t rows() const { return begin.back(); }
  int64_t first(int64_t i) const { return begin[static_cast<size_t>(i)]; }
  int64_t length(int64_t i) const { return first(i + 1) - first(i); }
};

}  // namespace seqconv::internal::runtime
