#pragma once

#include <initializer_list>
#include <type_traits>

#include "base/error.h"
#include "kernels/cuda/common/block.h"

/// What launches of all operators share. A Launcher has
///   template <class Body, class Task>
///   void run(int64_t blocks, int64_t shared, const Task& task);
/// which queues Body::run(block, task) for every block (the tests' runs it at
/// once on the host), with so many bytes of shared memory, and
///   Device device() const;
/// what it runs on. Every operator has
///   void run(Launcher& launcher, const Args& args);
/// for the arguments of each of its passes.
namespace seqconv::internal::kernels::cuda {

/// What a block may have without asking on any device, the most that 7.5 gives
/// (compute capability), that every later one gives (8.6, 8.9 and 12.0), and
/// that 8.0 gives.
inline constexpr int64_t kSmallShared = 48 * 1024;
inline constexpr int64_t kTuringShared = 64 * 1024;
inline constexpr int64_t kMediumShared = 99 * 1024;
inline constexpr int64_t kMaxShared = 163 * 1024;

/// What plans ask of a device: those of every one of compute capability 8.0 and
/// later are the same, but for kernels so long that they need more memory.
struct Device {
  int64_t shared = kMaxShared;  ///< bytes that a block may have
  /// True when tensor cores multiply bfloat16 (8.0 and later); float16 they do
  /// from 7.5 on, the oldest that kernels are compiled for.
  bool multiplies_bfloat16 = true;
};

/// Whether an operator of this shape has no element.
template <class Shape>
bool is_empty(const Shape& shape) {
  return shape.batch * shape.steps * shape.channels == 0;
}

/// Whether all addresses are multiples of so many bytes.
inline bool are_aligned(std::initializer_list<const void*> tensors, size_t bytes) {
  bool all = true;
  for (const void* const tensor : tensors)
    all = all && reinterpret_cast<uintptr_t>(tensor) % bytes == 0;
  return all;
}

/// run(V) for the most channels that a thread can read at once, in at most
/// kBytes: `channels` (of a row or a head) are a multiple of V and every tensor
/// is aligned.
template <class S, int kBytes, class Run>
void with_vector(int64_t channels, std::initializer_list<const void*> tensors, const Run& run) {
  constexpr int V = kBytes / static_cast<int>(sizeof(S));
  if constexpr (V > 1) {
    if (channels % V != 0 || !are_aligned(tensors, kBytes))
      return with_vector<S, kBytes / 2>(channels, tensors, run);
  }
  run(std::integral_constant<int, V>{});
}

/// The smallest n with 2^n >= count, at most `max_bits`.
inline int bits_for(int count, int max_bits) {
  int bits = 0;
  while (bits < max_bits && 1 << bits < count)
    ++bits;
  return bits;
}

/// Blocks with a thread for each of `count`.
inline int64_t blocks_for(int64_t count) {
  return chunks_of<int64_t>(count, kThreads);
}

/// Hands out aligned parts of shared memory.
class SharedLayout {
 public:
  int64_t add(int64_t elements, int64_t bytes) {
    const int64_t at = size_;
    size_ += round_up<int64_t>(elements * bytes, 16);
    return at;
  }
  int64_t size() const { return size_; }

 private:
  int64_t size_ = 0;
};
template <class T>
SEQCONV_DEVICE T* shared_at(char* shared, int64_t offset) {
  return reinterpret_cast<T*>(shared + offset);
}

}  // namespace seqconv::internal::kernels::cuda
