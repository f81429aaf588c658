#include "seqconv/kernels/random_words.h"

#include "kernels/pass_ops.h"

namespace seqconv::kernels {

const uint32_t*
random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* buffer) {
  static const RandomWords draw = random_words_of(best_isa());
  return draw(seed, first, count, buffer);
}

}  // namespace seqconv::kernels
