#pragma once

#include <ATen/core/Tensor.h>

/// The two places where a model's numbers cross between host and device, and
/// what LibTorch is told of CUDA devices.
namespace seqconv::ops {

/// `host` on `device`, copied from pinned memory in the order of the device's
/// work, without waiting; the tensor itself where it lies there already.
at::Tensor to_device(const at::Tensor& host, at::Device device);

/// The values of a tensor on the host: waits until the device has made them.
/// The device `meta` has no values: zeros stand for them.
at::Tensor to_host(const at::Tensor& tensor);

/// Has LibTorch, for the whole process, compute convolutions of float32 tensors
/// on CUDA devices in float32, not in TF32, and attention without cuDNN, which
/// plans anew for each new shape: decoding has one at almost every step.
void set_cuda_defaults();

}  // namespace seqconv::ops
