#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/block.h"
#include "seqconv/base/error.h"

/// Queues kernel bodies on a stream.
namespace seqconv::kernels::cuda {

/// Blocks of a body that a multiprocessor must have registers for: the compiler
/// uses as many as that leaves, or takes fewer and spills a few. 0: its choice.
template <class Body>
constexpr int least_blocks() {
  if constexpr (requires { Body::kLeastBlocks; })
    return Body::kLeastBlocks;
  return 0;
}

template <int kThreads, class Body, class Task>
__global__ void __launch_bounds__(kThreads, least_blocks<Body>())
    run_body(const __grid_constant__ Task task) {
  DeviceBlock block;
  Body::run(block, task);
}

class DeviceLauncher {
 public:
  explicit DeviceLauncher(Stream stream) : stream_(stream) {}

  template <class Body, class Task>
  void run(int64_t blocks, int threads, int64_t shared, const Task& task) {
    constexpr int kThreads = 128;
    SEQCONV_CHECK(
        blocks > 0 && blocks < (int64_t{1} << 31) && threads == kThreads,
        "[cuda] a launch must have 1 .. 2^31-1 blocks of ",
        kThreads,
        " threads, but got ",
        blocks,
        " of ",
        threads);
    const auto kernel = run_body<kThreads, Body, Task>;
    if (shared > 48 * 1024)
      check(cudaFuncSetAttribute(
          kernel,
          cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(shared)));
    kernel<<<
        static_cast<unsigned>(blocks),
        kThreads,
        static_cast<size_t>(shared),
        stream_>>>(task);
    check(cudaGetLastError());
  }

 private:
  static void check(cudaError_t error) {
    SEQCONV_CHECK(
        error == cudaSuccess,
        "[cuda] a launch failed: ",
        cudaGetErrorString(error));
  }

  Stream stream_;
};

}  // namespace seqconv::kernels::cuda
