#pragma once

#include <cstdint>

namespace seqconv::kernels {

/// Words of room that a row needs beyond the count asked for.
inline constexpr int64_t kRandomWordsSlack = 64;

/// Words in rows: word i of row r is words[r * stride + i].
struct WordRows {
  const uint32_t* words = nullptr;
  int64_t stride = 0;
};

/// The random words of elements [first + r * step, first + r * step + count) of
/// the stream `seed` for every row r < rows, equal to seqconv::random_word for
/// each, made many counters at a time in vector registers (quickest
/// if `first` and `step` are multiples of 4). `buffer` has room for
/// rows * (count + kRandomWordsSlack) words, in which the result lies.
WordRows random_word_rows(
    uint64_t seed,
    uint64_t first,
    int64_t step,
    int64_t rows,
    int64_t count,
    uint32_t* buffer);

}  // namespace seqconv::kernels
