#pragma once

#include <cstdint>

namespace seqconv::internal::metrics {

/// The random numbers of NumPy's default generator (default_rng): PCG64, XSL-RR
/// 128/64 (O'Neill 2014), seeded by SeedSequence. A stream of draws is the same
/// as there for draws of these kinds.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint64_t seed);

  /// A number below `count`, which is from 1 to 2^32 - 1, as choice() and
  /// integers() draw it (Lemire 2019).
  uint32_t below(uint32_t count);
  /// One of the bits that integers(2, dtype=bool) draws 32 at a time.
  bool bit();

 private:
  uint64_t next64();
  uint32_t next32();

  unsigned __int128 state_ = 0;
  unsigned __int128 increment_;
  uint32_t second_half_ = 0;  // of the last 64 bits, when it is not used yet
  bool has_half_ = false;
  uint32_t bits_ = 0;
  int bits_left_ = 0;
};

}  // namespace seqconv::internal::metrics
