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

}  // namespace seqconv::kernels
