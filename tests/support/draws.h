#pragma once

#include <cstdint>
#include <random>
#include <vector>

/// Draws of test cases: the same ones for a seed, wherever they are made.
namespace seqconv::internal::testing {

class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  /// One of first .. last.
  int64_t number(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_() % static_cast<uint32_t>(last - first + 1));
  }
  bool coin() { return number(0, 1) == 1; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<size_t>(number(0, static_cast<int64_t>(values.size()) - 1))];
  }

 protected:
  std::mt19937 random_;
};

}  // namespace seqconv::internal::testing
