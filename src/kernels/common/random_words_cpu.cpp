#include "seqconv/kernels/dropout.h"

#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {

WordRows random_word_rows(
    uint64_t seed,
    uint64_t first,
    int64_t step,
    int64_t rows,
    int64_t count,
    uint32_t* buffer) {
  static const RandomWordRows draw = random_word_rows_of(best_isa());
  return draw(seed, first, step, rows, count, buffer);
}

}  // namespace seqconv::kernels
