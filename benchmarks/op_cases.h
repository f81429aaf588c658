#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/conv.h"

/// The operators as calls to be timed: kernels on memory of their own, and the
/// least work that anybody would have to do.
namespace seqconv::bench {
using namespace internal;

enum class Op { kLightConv, kDynamicConv, kTalk };
enum class Storage { kFloat32, kBFloat16 };

/// Sizes of one case, centred. For talk both reaches are K.
struct OpShape {
  Op op = Op::kLightConv;
  Storage storage = Storage::kFloat32;
  int64_t batch = 1;
  int64_t steps = 32;
  int64_t channels = 512;
  int64_t head_channels = 64;
  int64_t kernel_size = 31;
  double drop = 0;                         ///< share of the convolutions' taps that is dropped
  kernels::Isa isa = kernels::best_isa();  ///< of what is timed

  int64_t heads() const { return channels / head_channels; }
  double tokens() const { return static_cast<double>(batch * steps); }
};

std::string op_name(Op op);
std::string storage_name(Storage storage);

/// What a pass cannot do without: every tensor moved once, every product made.
struct Work {
  double bytes = 0;
  double flops = 0;
};

struct OpCase {
  std::function<void()> forward;
  std::function<void()> backward;
  Work forward_work;
  Work backward_work;
};

OpCase make_case(const OpShape& shape);

/// Compares output and gradients of the operator with its reference on one
/// sequence of the shape; throws seqconv::internal::Error when they differ.
void check_case(const OpShape& shape);

}  // namespace seqconv::bench
