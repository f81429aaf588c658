#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "kernels/cuda/common/block.h"

/// A block of threads on the host (block.h).
namespace seqconv::internal::kernels::cuda {

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
  HostBlock(size_t shared_bytes, bool backwards)
      : backwards_(backwards),
        memory_(static_cast<char*>(::operator new (shared_bytes, std::align_val_t{16}))),
        shared_bytes_(shared_bytes) {}

  /// Another block, with shared memory that is not a number in any type.
  void start(int64_t index) {
    index_ = index;
    std::memset(memory_.get(), 0xff, shared_bytes_);
  }
  int64_t index() const { return index_; }
  char* shared() const { return memory_.get(); }
  template <class F>
  void each(const F& f) {
    for (int i = 0; i < kThreads; ++i)
      f(backwards_ ? kThreads - 1 - i : i);
  }
  template <class F>
  void warps(const F& f) {
    for (int i = 0; i < kWarps; ++i) {
      HostWarp warp(backwards_ ? kWarps - 1 - i : i);
      f(warp);
    }
  }
  template <class T>
  class Fragments {
   public:
    explicit Fragments(const HostBlock&) : lanes_(kWarps) {}
    Lanes<T>& of(const HostWarp& warp) { return lanes_[static_cast<size_t>(warp.index())]; }

   private:
    std::vector<Lanes<T>> lanes_;
  };

 private:
  struct Free {
    void operator()(char* p) const { ::operator delete (p, std::align_val_t{16}); }
  };
  bool backwards_;
  int64_t index_ = 0;
  std::unique_ptr<char, Free> memory_;
  size_t shared_bytes_;
};

}  // namespace seqconv::internal::kernels::cuda
