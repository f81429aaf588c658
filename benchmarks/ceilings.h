#pragma once

#include <cstdint>
#include <functional>

#include "kernels/parallel_for.h"

/// What the machine can do at most, measured beside what is compared with it.
namespace seqconv::bench {
using namespace internal;

/// Copies half of `bytes` onto the other half, with ordinary or streaming
/// (cache-bypassing) stores: the memory traffic of a perfect kernel that moves
/// that many bytes.
class Copy {
 public:
  Copy(int64_t bytes, const kernels::ParallelFor& threads);
  ~Copy();
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void plain();
  void streaming();
  /// Bytes read and written by one call.
  double bytes() const { return 2.0 * static_cast<double>(half_); }

 private:
  int64_t half_;
  const kernels::ParallelFor& threads_;
  char* source_;
  char* target_;
};

/// Reads `bytes`, a multiple of 1 KB, from a cache line on, in one thread, and
/// returns some sum of them.
double read_through(const void* from, int64_t bytes);

/// Floating-point operations of one call of `fma_burst`.
double fma_burst_flops(int threads);

/// Fused multiply-adds of float32 on registers alone, on each thread.
void fma_burst(int threads, const kernels::ParallelFor& parallel_for);

}  // namespace seqconv::bench
