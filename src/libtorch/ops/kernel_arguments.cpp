#include "libtorch/ops/kernel_arguments.h"

#include <ATen/Functions.h>

#include "libtorch/ops/parallel.h"

namespace seqconv::ops {

LengthValues::LengthValues(const char* op, const OptionalTensor& lengths, const at::Tensor& x) {
  if (!lengths)
    return;
  tensor_ = dense_lengths(lengths);
  data_ = tensor_.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < tensor_.numel(); ++b)
    TORCH_CHECK(
        data_[b] >= 0 && data_[b] <= x.size(1),
        "[",
        op,
        "] lengths must be in 0 .. T = ",
        x.size(1),
        ", but got ",
        data_[b],
        " in row ",
        b);
}

DropValues::DropValues(double p, const OptionalTensor& seed, const OptionalTensor& mask) {
  drop_.p = p;
  if (seed && p > 0) {
    drop_.seeded = true;
    drop_.seed = static_cast<uint64_t>(*seed->const_data_ptr<int64_t>());
  }
  mask_ = mask_bytes(mask);
  drop_.mask = const_pointer<uint8_t>(mask_);
}

kernels::ConvShape conv_shape(const at::Tensor& x, const at::Tensor& logits, int64_t padding_left) {
  return {
      .batch = x.size(0),
      .steps = x.size(1),
      .channels = x.size(2),
      .heads = logits.size(-2),
      .kernel_size = logits.size(-1),
      .padding_left = padding_left};
}

at::ScalarType accumulator_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor accumulated(const at::Tensor& tensor) {
  return tensor.to(accumulator_type(tensor.scalar_type())).contiguous();
}

at::Tensor accumulated_or_none(const OptionalTensor& tensor) {
  return tensor ? accumulated(*tensor) : at::Tensor();
}

at::Tensor dense_or_none(const OptionalTensor& tensor) {
  return tensor ? tensor->contiguous() : at::Tensor();
}

at::Tensor dense_lengths(const OptionalTensor& lengths) {
  return lengths ? lengths->to(at::kLong).contiguous() : at::Tensor();
}

at::Tensor mask_bytes(const OptionalTensor& mask) {
  if (!mask)
    return at::Tensor();
  return mask->scalar_type() == at::kBool ? mask->contiguous() : mask->ne(0).contiguous();
}

void write_back(const at::Tensor& dense, at::Tensor& state) {
  if (!dense.is_same(state))
    state.copy_(dense);
}

int64_t position_value(const char* op, const at::Tensor& position) {
  const int64_t value = *position.const_data_ptr<int64_t>();
  TORCH_CHECK(value >= 0, "[", op, "] position must not be negative, but got ", value);
  return value;
}

kernels::Execution cpu_execution() {
  return {parallel_for(), kernels::best_isa()};
}

}  // namespace seqconv::ops
