#include "runtime/feed_forward.h"

#include <algorithm>

namespace seqconv::internal::runtime {
namespace {

/// x [rows, width] behind an activation, in memory of `frame`.
const float* activated(
    kernels::Activation activation,
    int64_t rows,
    int64_t width,
    const float* x,
    Workspace::Frame& frame) {
  float* const y = frame.take(rows * width);
  if (activation == kernels::Activation::kSwish)
    silu(rows * width, x, y);
  else
    std::transform(x, x + rows * width, y, [](float z) { return std::max(z, 0.0F); });
  return y;
}

}  // namespace

void FeedForward::run(
    const RowOrder& order, FeedForwardSteps* past, const LayerRows& rows, Workspace& space) const {
  const int64_t count = order.rows();
  if (!conv1_)
    return run({.rows = count, .x = rows.x, .residual = rows.residual, .y = rows.y}, space);
  Workspace::Frame frame(space);
  const int64_t hidden = fc1_.weight.outputs(), C = fc2_.weight.outputs();
  const ShortConvRun conv1{conv1_.get(), order, past == nullptr ? nullptr : &past->conv1};
  const ShortConvRun conv2{conv2_.get(), order, past == nullptr ? nullptr : &past->conv2};
  float* const inner = frame.take(count * hidden);
  fc1_.run({.rows = count, .x = rows.x, .y = inner});
  const float* const h =
      activated(activation_, count, hidden, conv1(inner, rows.x, frame, space), frame);
  float* const outer = frame.take(count * C);
  fc2_.run({.rows = count, .x = h, .y = outer});
  add_residual(count * C, conv2(outer, h, frame, space), rows.residual, rows.y);
}

}  // namespace seqconv::internal::runtime
