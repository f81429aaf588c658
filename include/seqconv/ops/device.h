#pragma once

#include <ATen/core/Tensor.h>

/// The two places where a model's numbers cross between host and device.
namespace seqconv::ops {

/// `host` on `device`, copied from pinned memory in the order of the device's
/// work, without waiting; the tensor itself where it lies there already.
at::Tensor to_device(const at::Tensor& host, at::Device device);

/// The values of a tensor on the host: waits until the device has made them.
/// The device `meta` has no values: zeros stand for them.
at::Tensor to_host(const at::Tensor& tensor);

}  // namespace seqconv::ops
