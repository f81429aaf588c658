#pragma once

#include <cstdint>

namespace seqconv::kernels {

/// Words of room that random_words needs beyond the count asked for.
inline constexpr int64_t kRandomWordsSlack = 64;

/// The random words of elements [first, first + count) of the stream `seed`,
/// equal to seqconv::random_word for each, made many counters at a time in
/// vector registers. `buffer` has room for count + kRandomWordsSlack words; the
/// word of element `first` is at the returned place inside it.
const uint32_t*
random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* buffer);

/// Words in rows: word i of row r is words[r * stride + i].
struct WordRows {
  const uint32_t* words = nullptr;
  int64_t stride = 0;
};

/// The random words of elements [first + r * step, first + r * step + count)
/// for every row r < rows, quickly too where `count` is small (quickest if
/// `step` is a multiple of 4). `buffer` has room for
/// rows * (count + kRandomWordsSlack) words.
WordRows random_word_rows(
    uint64_t seed,
    uint64_t first,
    int64_t step,
    int64_t rows,
    int64_t count,
    uint32_t* buffer);

}  // namespace seqconv::kernels
