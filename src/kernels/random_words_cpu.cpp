#include "seqconv/kernels/random_words.h"

#include "kernels/pass_ops.h"

namespace seqconv::kernels {
namespace {

const RandomWordOps& ops() {
  static const RandomWordOps best = random_word_ops(best_isa());
  return best;
}

}  // namespace

const uint32_t*
random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* buffer) {
  return ops().words(seed, first, count, buffer);
}

WordRows random_word_rows(
    uint64_t seed,
    uint64_t first,
    int64_t step,
    int64_t rows,
    int64_t count,
    uint32_t* buffer) {
  return ops().rows(seed, first, step, rows, count, buffer);
}

}  // namespace seqconv::kernels
