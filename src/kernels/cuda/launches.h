#pragma once

#include <initializer_list>

#include "kernels/cuda/block.h"

/// What launches of all operators share. A Launcher has
///   template <class Body, class Task>
///   void run(int64_t blocks, int threads, int64_t shared, const Task& task);
/// which queues Body::run(block, task) for every block (the tests' runs it at
/// once on the host), and, for convolutions,
///   int64_t shared_limit() const;
/// the bytes of shared memory that a block may have.
namespace seqconv::kernels::cuda {

/// Whether an operator of this shape has no element.
template <class Shape>
bool is_empty(const Shape& shape) {
  return shape.batch * shape.steps * shape.channels == 0;
}

inline bool is_aligned(const void* pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

/// Whether all addresses are multiples of so many bytes.
inline bool are_aligned(
    std::initializer_list<const void*> tensors,
    size_t bytes) {
  bool all = true;
  for (const void* const tensor : tensors)
    all = all && is_aligned(tensor, bytes);
  return all;
}

}  // namespace seqconv::kernels::cuda
