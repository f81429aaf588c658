#pragma once

#include "kernels/cuda/host_device.h"

#ifndef __CUDACC__
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <vector>
#endif

/// A block of threads. Kernel bodies are written as phases, `block.each(f)`:
/// f(thread) for every thread, then a barrier. On the device a phase is the
/// calling thread's own call and __syncthreads(); on the host it is a loop, so
/// that tests run the very same bodies. Nothing but Fragments lives from one
/// phase to the next outside shared memory.
namespace seqconv::kernels::cuda {

inline constexpr int kWarp = 32;

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
      : index_(__shfl_sync(
            0xffffffffu,
            static_cast<int>(threadIdx.x) / kWarp,
            0)) {}
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
  __device__ int threads() const { return blockDim.x; }
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

class HostWarp {
 public:
  explicit HostWarp(int index) : index_(index) {}
  int index() const { return index_; }
  template <class F>
  void each(const F& f) {
    for (int lane = 0; lane < kWarp; ++lane)
      f(lane);
  }

 private:
  int index_;
};

/// Runs the phases of one block after another, threads in order, over shared
/// memory of exactly the size of a launch.
class HostBlock {
 public:
  /// `backwards` runs the threads of a phase last first: a result that
  /// changes tells of threads that meet in memory without a barrier.
  HostBlock(int threads, size_t shared_bytes, bool backwards)
      : threads_(threads),
        backwards_(backwards),
        memory_(static_cast<char*>(
            ::operator new (shared_bytes, std::align_val_t{16}))),
        shared_bytes_(shared_bytes) {}

  /// Another block, with shared memory that is not a number in any type.
  void start(int64_t index) {
    index_ = index;
    std::memset(memory_.get(), 0xff, shared_bytes_);
  }
  int64_t index() const { return index_; }
  int threads() const { return threads_; }
  char* shared() const { return memory_.get(); }
  template <class F>
  void each(const F& f) {
    for (int i = 0; i < threads_; ++i)
      f(backwards_ ? threads_ - 1 - i : i);
  }
  template <class F>
  void warps(const F& f) {
    const int count = threads_ / kWarp;
    for (int i = 0; i < count; ++i) {
      HostWarp warp(backwards_ ? count - 1 - i : i);
      f(warp);
    }
  }
  template <class T>
  class Fragments {
   public:
    explicit Fragments(const HostBlock& block)
        : lanes_(static_cast<size_t>(block.threads() / kWarp)) {}
    Lanes<T>& of(const HostWarp& warp) {
      return lanes_[static_cast<size_t>(warp.index())];
    }

   private:
    std::vector<Lanes<T>> lanes_;
  };

 private:
  struct Free {
    void operator()(char* p) const {
      ::operator delete (p, std::align_val_t{16});
    }
  };
  int threads_;
  bool backwards_;
  int64_t index_ = 0;
  std::unique_ptr<char, Free> memory_;
  size_t shared_bytes_;
};

#endif

/// Sums over groups of kGroup neighbouring lanes, in one fixed order; then
/// every lane holds its group's.
template <int kGroup, class A, class Warp>
SEQCONV_DEVICE void sum_groups(Warp&, Lanes<A>& values) {
#ifdef __CUDACC__
  SEQCONV_UNROLL
  for (int step = kGroup / 2; step > 0; step /= 2)
    values.value += __shfl_xor_sync(0xffffffffu, values.value, step);
#else
  for (size_t step = kGroup / 2; step > 0; step /= 2) {
    const std::array<A, kWarp> before = values.value;
    for (size_t lane = 0; lane < kWarp; ++lane)
      values.value[lane] += before[lane ^ step];
  }
#endif
}

/// The least, or the most, of what the lanes of a warp hold.
template <class Warp>
SEQCONV_DEVICE int lanes_min(Warp&, Lanes<int>& values) {
#ifdef __CUDACC__
  return __reduce_min_sync(0xffffffffu, values.value);
#else
  return *std::min_element(values.value.begin(), values.value.end());
#endif
}
template <class Warp>
SEQCONV_DEVICE int lanes_max(Warp&, Lanes<int>& values) {
#ifdef __CUDACC__
  return __reduce_max_sync(0xffffffffu, values.value);
#else
  return *std::max_element(values.value.begin(), values.value.end());
#endif
}

/// Joins what 2^bits neighbouring lanes hold, at most 4 of them, by the
/// commutative f; all of them get the result.
template <class A, class Warp, class F>
SEQCONV_DEVICE void
join_neighbours(Warp& warp, Lanes<A>& values, int bits, const F& f) {
  SEQCONV_UNROLL
  for (int bit = 0; bit < 2; ++bit) {
    if (bit >= bits)
      return;
#ifdef __CUDACC__
    values.value =
        f(values.value, __shfl_xor_sync(0xffffffffu, values.value, 1 << bit));
#else
    const Lanes<A> before = values;
    warp.each([&](int lane) {
      values[lane] =
          f(before.value[static_cast<size_t>(lane)],
            before.value[static_cast<size_t>(lane ^ 1 << bit)]);
    });
#endif
  }
}

}  // namespace seqconv::kernels::cuda
