#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/block.h"
#include "seqconv/base/error.h"

/// Queues kernel bodies on a stream.
namespace seqconv::kernels::cuda {

/// Blocks of a body that a multiprocessor must have registers for: the compiler
/// uses as many as that leaves, or takes fewer and spills a few. 0: its choice.
template <class Body>
constexpr int min_blocks() {
  if constexpr (requires { Body::kMinBlocks; })
    return Body::kMinBlocks;
  return 0;
}

template <int kThreads, class Body, class Task>
__global__ void __launch_bounds__(kThreads, min_blocks<Body>())
    run_body(const __grid_constant__ Task task) {
  DeviceBlock block;
  Body::run(block, task);
}

/// Throws what the runtime reports, and clears it: PyTorch's next check would
/// find it and blame another operator.
inline void check_runtime(cudaError_t error, const char* what) {
  if (error == cudaSuccess)
    return;
  cudaGetLastError();
  fail("[cuda] ", what, " failed: ", cudaGetErrorString(error));
}

/// Bytes of shared memory that a block may have on the current device.
inline int64_t device_shared_limit() {
  int device = 0, bytes = 0;
  check_runtime(cudaGetDevice(&device), "asking for the device");
  check_runtime(
      cudaDeviceGetAttribute(
          &bytes,
          cudaDevAttrMaxSharedMemoryPerBlockOptin,
          device),
      "asking for the shared memory of a block");
  return bytes;
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
      check_runtime(
          cudaFuncSetAttribute(
              kernel,
              cudaFuncAttributeMaxDynamicSharedMemorySize,
              static_cast<int>(shared)),
          "asking for shared memory");
    kernel<<<
        static_cast<unsigned>(blocks),
        kThreads,
        static_cast<size_t>(shared),
        stream_>>>(task);
    check_runtime(cudaGetLastError(), "a launch");
  }

  int64_t shared_limit() const { return device_shared_limit(); }

 private:
  Stream stream_;
};

}  // namespace seqconv::kernels::cuda
