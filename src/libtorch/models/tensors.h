#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <optional>

#include "libtorch/ops/device.h"
#include "text/corpus/batch.h"

namespace seqconv::internal {

/// A view of a batch's ids; the batch must outlive it.
inline at::Tensor view_ids(const std::vector<int64_t>& ids, at::IntArrayRef shape) {
  return at::from_blob(const_cast<int64_t*>(ids.data()), shape, at::kLong);
}

inline at::Tensor source_tensor(const Batch& batch) {  // [B, S]
  return view_ids(batch.source, {batch.rows, batch.source_steps});
}
inline at::Tensor source_length_tensor(const Batch& batch) {  // [B]
  return view_ids(batch.source_lengths, {batch.rows});
}
inline at::Tensor target_in_tensor(const Batch& batch) {  // [B, T]
  return view_ids(batch.target_in, {batch.rows, batch.target_steps});
}
inline at::Tensor target_out_tensor(const Batch& batch) {  // [B, T]
  return view_ids(batch.target_out, {batch.rows, batch.target_steps});
}

/// The lengths [B] when one of them is below `steps`, else nothing: masks cost
/// time where there is no padding. On the host, where they are read; those on a
/// device are taken as they are.
inline std::optional<at::Tensor> lengths_if_padded(const at::Tensor& lengths, int64_t steps) {
  const bool padded =
      lengths.numel() > 0 && (!lengths.is_cpu() || lengths.min().item<int64_t>() < steps);
  return padded ? std::optional(lengths) : std::nullopt;
}

/// The same on the device of a model.
inline std::optional<at::Tensor> lengths_if_padded(
    const at::Tensor& lengths, int64_t steps, at::Device device) {
  const auto padded = lengths_if_padded(lengths, steps);
  return padded ? std::optional(ops::to_device(*padded, device)) : std::nullopt;
}

}  // namespace seqconv::internal
