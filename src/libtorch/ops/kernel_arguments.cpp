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
    SEQCONV_CHECK_OP(
        op,
        data_[b] >= 0 && data_[b] <= x.size(1),
        "lengths must be in 0 .. T = {}, but got {} in row {}",
        x.size(1),
        data_[b],
        b);
}

DropValues::DropValues(const DropConnect& drop) : mask_(mask_bytes(drop.mask)) {
  drop_.p = drop.p;
  if (drop.seed && drop.p > 0) {
    drop_.seeded = true;
    drop_.seed = static_cast<uint64_t>(*drop.seed->const_data_ptr<int64_t>());
  }
  drop_.mask = const_pointer<uint8_t>(mask_);
}

kernels::ConvShape conv_shape(const ConvArguments& args) {
  return {
      .batch = args.x.size(0),
      .steps = args.x.size(1),
      .channels = args.x.size(2),
      .heads = args.logits.size(-2),
      .kernel_size = args.logits.size(-1),
      .padding_left = args.padding_left.guard_int(__FILE__, __LINE__)};
}

at::ScalarType accumulator_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor accumulated(const at::Tensor& tensor) {
  // A step has few microseconds, of which each call of the dispatcher takes some.
  if (tensor.scalar_type() == accumulator_type(tensor.scalar_type()) && tensor.is_contiguous())
    return tensor;
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

at::Tensor empty_gradient(
    bool wanted, c10::SymIntArrayRef sizes, const at::TensorOptions& options) {
  return wanted ? at::empty_symint(sizes, options) : at::empty({0}, options);
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
  SEQCONV_CHECK_OP(op, value >= 0, "position must not be negative, but got {}", value);
  SEQCONV_CHECK_OP(op, value < kEndOfPositions, "position must be below 2^62, but got {}", value);
  return value;
}

kernels::Execution cpu_execution() {
  return {parallel_for(), kernels::best_isa()};
}

}  // namespace seqconv::ops
