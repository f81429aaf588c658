#pragma once

#include <array>

#include "base/random.h"
#include "kernels/cuda/common/launches.h"
#include "kernels/cuda/kept_elements.h"

namespace seqconv::internal::kernels::cuda {

/// A thread for a block of four random words, whether they are all asked for
/// or not.
struct KeptElementsBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const KeptElements& task) {
    block.each([&](int thread) {
      const int64_t words = task.first / 4 + block.index() * kThreads + thread;
      const int64_t begin = 4 * words - task.first;  // of the elements
      if (begin >= task.count)
        return;
      const std::array<uint32_t, 4> word =
          philox(static_cast<uint64_t>(*task.seed), static_cast<uint64_t>(words));
      unroll<4>([&](int i) {
        const int64_t element = begin + i;
        if (element >= 0 && element < task.count)
          task.kept[element] = word[static_cast<size_t>(i)] >= task.threshold;
      });
    });
  }
};

template <class Launcher>
void run(Launcher& launcher, const KeptElements& task) {
  if (task.count == 0)
    return;
  const int64_t blocks_of_words = (task.first + task.count + 3) / 4 - task.first / 4;
  launcher.template run<KeptElementsBody>(
      blocks_for(blocks_of_words),
      /*shared=*/0,
      task);
}

}  // namespace seqconv::internal::kernels::cuda
