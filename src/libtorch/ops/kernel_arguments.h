#pragma once

#include "kernels/conv.h"
#include "libtorch/ops/conv_checks.h"

/// From checked tensors to what kernels take.
namespace seqconv::ops {
using namespace internal;

/// Pointers and values of arguments for CPU kernels; owns what had to be made
/// contiguous.
class LengthValues {
 public:
  /// Checks that all are in 0 .. T.
  LengthValues(const char* op, const OptionalTensor& lengths, const at::Tensor& x);
  const int64_t* data() const { return data_; }

 private:
  at::Tensor tensor_;
  const int64_t* data_ = nullptr;
};

class DropValues {
 public:
  explicit DropValues(const DropConnect& drop);
  const kernels::TapDrop& get() const { return drop_; }

 private:
  at::Tensor mask_;
  kernels::TapDrop drop_;
};

/// Sizes of checked arguments.
kernels::ConvShape conv_shape(const ConvArguments& args);

/// float64 for float64, else float32.
at::ScalarType accumulator_type(at::ScalarType type);

/// Contiguous and of the type sums are kept in.
at::Tensor accumulated(const at::Tensor& tensor);

/// The same where there is a tensor, undefined where there is none.
at::Tensor accumulated_or_none(const OptionalTensor& tensor);
at::Tensor dense_or_none(const OptionalTensor& tensor);

/// Lengths as dense int64; undefined where there are none.
at::Tensor dense_lengths(const OptionalTensor& lengths);

/// Room for a gradient, or [0] where it was not asked for.
at::Tensor empty_gradient(bool wanted, c10::SymIntArrayRef sizes, const at::TensorOptions& options);

/// A DropConnect mask as dense bytes; undefined where there is none.
at::Tensor mask_bytes(const OptionalTensor& mask);

/// Copies the dense form of a state that a kernel has changed back into it,
/// unless the two are one.
void write_back(const at::Tensor& dense, at::Tensor& state);

/// Positions are below this, so that sums with numbers of inputs are numbers.
inline constexpr int64_t kEndOfPositions = int64_t{1} << 62;

/// The value of a position tensor (one int64 element), in 0 .. kEndOfPositions - 1.
int64_t position_value(const char* op, const at::Tensor& position);

/// Threads and instruction set of the CPU kernels.
kernels::Execution cpu_execution();

/// Pointers with the kernels' types. null for undefined tensors.
template <class S>
const S* const_pointer(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const S*>(tensor.const_data_ptr()) : nullptr;
}
template <class S>
S* pointer(const at::Tensor& tensor) {
  return static_cast<S*>(tensor.mutable_data_ptr());
}
/// Null where a gradient is not wanted.
template <class S>
S* pointer_if(bool wanted, const at::Tensor& gradient) {
  return wanted ? pointer<S>(gradient) : nullptr;
}

/// Calls f with a value of the storage type of x (already checked).
template <class F>
void dispatch_storage(at::ScalarType type, const F& f) {
  switch (type) {
    case at::kDouble:
      return f(double{});
    case at::kFloat:
      return f(float{});
    case at::kBFloat16:
      return f(kernels::BFloat16{});
    default:
      TORCH_INTERNAL_ASSERT(false, "unchecked type ", type);
  }
}

/// Calls f with values of the storage types of x and of a tensor beside it.
template <class F>
void dispatch_storage_pair(at::ScalarType type, at::ScalarType beside, const F& f) {
  if (type == at::kBFloat16 && beside == at::kFloat)
    return f(kernels::BFloat16{}, float{});
  dispatch_storage(type, [&](auto value) { f(value, value); });
}

}  // namespace seqconv::ops
