#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace seqconv::ops {

/// Decides one dropout mask: element i is kept when random_word(value, i) >=
/// drop_threshold(p) (base/random.h).
struct Seed {
  Seed(uint64_t seed) : value(seed) {}  // NOLINT: a number is a seed

  uint64_t value = 0;
  /// The same as int64 [] on a device that reads it when it draws, so that a
  /// captured graph draws new masks; undefined: the value is copied there.
  at::Tensor tensor;
  /// A batch that was split: its element 0 comes after `rows_before` rows, each
  /// as large as one of its own `rows` (0: it was not split).
  int64_t rows_before = 0;
  int64_t rows = 0;

  /// int64 [], where it lies already, else on the host.
  at::Tensor as_tensor() const;

  /// Number of the first of a tensor's elements, batch axis first.
  int64_t first_of(int64_t elements) const {
    return rows == 0 ? 0 : rows_before * (elements / rows);
  }
};

}  // namespace seqconv::ops
