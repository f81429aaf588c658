#pragma once

#include "kernels/cuda/common/packs.h"

#ifndef __CUDACC__
#include <array>
#endif

/// A block of kThreads threads. Kernel bodies are written as phases,
/// `block.each(f)`: f(thread) for every thread, then a barrier. On the device a
/// phase is the calling thread's own call and __syncthreads(); on the host it
/// is a loop, so that tests run the very same bodies. Nothing but Fragments
/// lives from one phase to the next outside shared memory.
namespace seqconv::internal::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 128;  ///< of every block
inline constexpr int kWarps = kThreads / kWarp;

#ifdef __CUDACC__

/// What every lane of a warp holds of a T: here, its own.
template <class T>
struct Lanes {
  T value;
  __device__ T& operator[](int) { return value; }
};

class DeviceWarp {
 public:
  /// By a shuffle of all lanes, which tells the compiler that they agree.
  __device__ DeviceWarp()
      : index_(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarp, 0)) {}
  __device__ int index() const { return index_; }
  template <class F>
  __device__ void each(const F& f) {
    f(static_cast<int>(threadIdx.x) % kWarp);
  }

 private:
  int index_;
};

class DeviceBlock {
 public:
  __device__ int64_t index() const { return blockIdx.x; }
  __device__ char* shared() const {
    extern __shared__ __align__(16) char memory[];
    return memory;
  }
  template <class F>
  __device__ void each(const F& f) {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  /// f(warp) for every warp, then a barrier.
  template <class F>
  __device__ void warps(const F& f) {
    DeviceWarp warp;
    f(warp);
    __syncthreads();
  }
  /// A T for every thread that outlives phases.
  template <class T>
  class Fragments {
   public:
    __device__ explicit Fragments(const DeviceBlock&) {}
    __device__ Lanes<T>& of(const DeviceWarp&) { return lanes_; }

   private:
    Lanes<T> lanes_;
  };
};

#else

template <class T>
struct Lanes {
  std::array<T, kWarp> value;
  T& operator[](int lane) { return value[static_cast<size_t>(lane)]; }
};

#endif

/// Joins what 2^bits neighbouring lanes hold, at most 2^kMaxBits of them, by
/// the commutative f in one fixed order; all of them get the result.
template <int kMaxBits, class T, class Warp, class F>
SEQCONV_DEVICE void join_lanes(Warp& warp, Lanes<T>& values, int bits, const F& f) {
  unroll<kMaxBits>([&](int bit) {
    if (bit >= bits)
      return;
#ifdef __CUDACC__
    values.value = f(values.value, __shfl_xor_sync(0xffffffffu, values.value, 1 << bit));
#else
    Lanes<T> before = values;
    warp.each([&](int lane) { values[lane] = f(before[lane], before[lane ^ 1 << bit]); });
#endif
  });
}

struct AddFloats {
  SEQCONV_HD float operator()(float a, float b) const { return a + b; }
};

}  // namespace seqconv::internal::kernels::cuda
