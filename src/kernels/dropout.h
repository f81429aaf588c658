#pragma once

#include <cstdint>

#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels {

/// One dropout of one micro-batch: element i is kept when
/// random_word(seed, i) >= drop_threshold(p), and then scaled by 1/(1-p).
/// 0 <= p < 1; p = 0 draws nothing.
struct Dropout {
  double p = 0;
  uint64_t seed = 0;
};

/// y[i] = dropout(x[i]) for i in [0, count); also its own backward pass (the
/// mask is drawn again). x and y may be the same. T: float, double, BFloat16.
template <class T>
void dropout(const T* x, T* y, int64_t count, Dropout, const ParallelFor&);

/// y[i] = residual[i] + dropout(x[i]).
template <class T>
void dropout_add(
    const T* x,
    const T* residual,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for);

/// Words of room that a row needs beyond the count asked for.
inline constexpr int64_t kRandomWordsSlack = 64;

/// Words in rows: word i of row r is words[r * stride + i].
struct WordRows {
  const uint32_t* words = nullptr;
  int64_t stride = 0;
};

/// The random words of elements [first + r * step, first + r * step + count) of
/// the stream `seed` for every row r < rows, equal to
/// seqconv::internal::random_word for each, made many counters at a time in
/// vector registers (quickest if `first` and `step` are multiples of 4).
/// `buffer` has room for rows * (count + kRandomWordsSlack) words, in which the
/// result lies.
WordRows random_word_rows(
    uint64_t seed, uint64_t first, int64_t step, int64_t rows, int64_t count, uint32_t* buffer);

}  // namespace seqconv::internal::kernels
