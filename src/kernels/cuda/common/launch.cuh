#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>

#include "kernels/cuda/common/launches.h"

/// Queues kernel bodies on a stream.
namespace seqconv::internal::kernels::cuda {

/// Blocks of a body that a multiprocessor must have registers for: the compiler
/// uses as many as that leaves, or takes fewer and spills a few. 0: its choice.
template <class Body>
constexpr int min_blocks() {
  if constexpr (requires { Body::kMinBlocks; })
    return Body::kMinBlocks;
  return 0;
}

template <class Body, class Task>
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

inline int current_device() {
  int device = 0;
  check_runtime(cudaGetDevice(&device), "asking for the device");
  return device;
}

class DeviceLauncher {
 public:
  explicit DeviceLauncher(Stream stream) : stream_(stream) {}

  template <class Body, class Task>
  void run(int64_t blocks, int64_t shared, const Task& task) {
    SEQCONV_CHECK(
        blocks > 0 && blocks < (int64_t{1} << 31),
        "[cuda] a launch must have 1 .. 2^31-1 blocks, but got ",
        blocks);
    constexpr auto kernel = run_body<Body, Task>;
    if (shared > kSmallShared)
      allow_shared<kernel>();
    kernel<<<static_cast<unsigned>(blocks), kThreads, static_cast<size_t>(shared), stream_>>>(task);
    check_runtime(cudaGetLastError(), "a launch");
  }

  Device device() const {
    return {
        .shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
        .multiplies_bfloat16 = attribute(cudaDevAttrComputeCapabilityMajor) >= 8};
  }

 private:
  static int attribute(cudaDeviceAttr which) {
    int value = 0;
    check_runtime(
        cudaDeviceGetAttribute(&value, which, current_device()), "asking for the device's limits");
    return value;
  }

  /// Lets blocks of a kernel have all that there is, once for each device:
  /// another thread's launch must not find less.
  template <auto kKernel>
  void allow_shared() const {
    static std::array<std::atomic<bool>, 64> done = {};
    const auto device = static_cast<size_t>(current_device());
    if (device < done.size() && done[device].load())
      return;
    check_runtime(
        cudaFuncSetAttribute(
            kKernel,
            cudaFuncAttributeMaxDynamicSharedMemorySize,
            static_cast<int>(this->device().shared)),
        "asking for shared memory");
    if (device < done.size())
      done[device].store(true);
  }

  Stream stream_;
};

template <class Args>
void launch(const Args& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run(launcher, args);
}

/// Compiles launch() for a pass in every type.
#define SEQCONV_LAUNCH(Args)                                \
  template void launch(const Args<float>& args, Stream);    \
  template void launch(const Args<BFloat16>& args, Stream); \
  template void launch(const Args<Float16>& args, Stream);

}  // namespace seqconv::internal::kernels::cuda
