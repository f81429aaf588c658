#pragma once

#include <cstdint>
#include <random>

namespace seqconv::internal {

/// The numbers of Python's generator after random.seed(seed).
class PythonRandom {
 public:
  explicit PythonRandom(uint32_t seed);

  /// random.random(): in [0, 1), with 53 bits.
  double next();

 private:
  std::mt19937 words_;
};

}  // namespace seqconv::internal
