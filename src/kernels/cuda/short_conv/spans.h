#pragma once

#include "kernels/cuda/common/launches.h"

/// Says where the sequences of a short convolution lie, row by row.
namespace seqconv::internal::kernels::cuda {

/// The sequence of a row, in rows of the tensor. One that lies further off than a
/// kernel ever looks may be cut there.
struct Span {
  int64_t first = 0;
  int64_t end = 0;
  int64_t state = -1;  ///< its row of the inputs before; negative: there are none

  SEQCONV_HD bool holds(int64_t row) const { return row >= first && row < end; }
};

/// Sequences of x [B, T, C], of the rows of the batch or as ShortConvSetup says.
struct Sequences {
  int64_t batch = 0;
  int64_t steps = 0;
  const int64_t* lengths = nullptr;
  const int64_t* offsets = nullptr;  ///< [count + 1]
  int64_t count = 0;
  const int64_t* numbers = nullptr;
  Span* spans = nullptr;  ///< [B T], made where there are offsets or numbers
  int64_t reach = 0;      ///< rows that a kernel looks to either side

  SEQCONV_HD int64_t rows() const { return batch * steps; }
  SEQCONV_HD bool has_spans() const { return offsets != nullptr || numbers != nullptr; }

  /// The sequence of a row, which belongs to row b of the batch.
  SEQCONV_HD Span at(int64_t row, int64_t b) const {
    return spans != nullptr ? spans[row] : of_batch(b);
  }
  /// The sequence behind row m of the inputs before.
  SEQCONV_HD Span of_state(int64_t m) const {
    if (offsets != nullptr)
      return packed(m);
    if (numbers == nullptr || steps == 0)
      return of_batch(m);
    const Span span = spans[m * steps];
    return span.state == m ? span : Span{};
  }
  /// As at(), of offsets or numbers themselves.
  SEQCONV_HD Span found(int64_t row) const {
    return offsets != nullptr ? packed(last_before(row)) : numbered(row);
  }

 private:
  SEQCONV_HD Span of_batch(int64_t b) const {
    return {b * steps, b * steps + valid_steps(lengths, b, steps), b};
  }
  SEQCONV_HD Span packed(int64_t i) const {
    if (i < 0 || i >= count)
      return {};
    return {
        clamped<int64_t>(offsets[i], 0, rows()), clamped<int64_t>(offsets[i + 1], 0, rows()), i};
  }
  /// The last sequence that begins at a row or before it.
  SEQCONV_HD int64_t last_before(int64_t row) const {
    int64_t low = 0, high = count;  // begins at or before the row; does not
    while (low + 1 < high) {
      const int64_t middle = low + (high - low) / 2;
      (offsets[middle] <= row ? low : high) = middle;
    }
    return low;
  }
  SEQCONV_HD Span numbered(int64_t row) const {
    const int64_t b = row / steps, number = numbers[row];
    if (number < 0)
      return {};
    Span span = {row, row + 1, -1};
    const int64_t begin = max(b * steps, row - reach), end = min((b + 1) * steps, row + reach + 1);
    while (span.first > begin && numbers[span.first - 1] == number)
      --span.first;
    while (span.end < end && numbers[span.end] == number)
      ++span.end;
    if (span.first == b * steps)
      span.state = b;
    return span;
  }
};

/// Makes spans, a thread for a row.
struct SpansBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const Sequences& task) {
    block.each([&](int thread) {
      const int64_t row = block.index() * kThreads + thread;
      if (row < task.rows())
        task.spans[row] = task.found(row);
    });
  }
};

}  // namespace seqconv::internal::kernels::cuda
