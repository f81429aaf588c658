#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

/// The two places where a model's numbers cross between host and device, what
/// LibTorch is told of CUDA devices, and what it says of memory.
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

/// Tells errors that smaller tensors may mend from others: memory of LibTorch's
/// own is too small, or it left too little to a library that LibTorch calls
/// (cuBLAS, cuDNN, cuSOLVER, the driver).
bool is_out_of_memory(const c10::Error& error);

/// Gives a device's memory that LibTorch keeps for later back to the device.
void empty_cache(at::Device device);

}  // namespace seqconv::ops
