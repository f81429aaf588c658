#pragma once

#include "kernels/cuda/conv/run.h"

/// The backward pass of a convolution: the pass over its tiles, then sums of
/// what blocks left in the workspace.
namespace seqconv::kernels::cuda {

/// Elements of [count, width] and of what its sums by stages leave, the last
/// one included.
inline int64_t sum_elements(int64_t count, int64_t width) {
  int64_t elements = count * width;
  while (count > 1) {
    count = sum_outputs(count);
    elements += count * width;
  }
  return elements;
}

/// Sums from [count, width] by stages. Results lie behind `from`; the last one
/// goes to `last` unless that is null. Gives where it is.
template <class Launcher>
const float* launch_sums(
    Launcher& launcher,
    float* from,
    int64_t count,
    int64_t width,
    float* last) {
  while (count > 1) {
    const int64_t left = sum_outputs(count);
    float* const to =
        left == 1 && last != nullptr ? last : from + count * width;
    launcher.template run<SumBody>(
        left * blocks_for(width),
        0,
        SumTask{from, to, count, width});
    from = to;
    count = left;
  }
  return from;
}

inline int64_t bias_chunks(const ConvShape& shape) {
  return chunks_of(shape.batch * shape.steps, kBiasRows);
}

template <class S, class Launcher>
void launch_bias(
    Launcher& launcher,
    const ConvBackward<S>& args,
    float* workspace) {
  const ConvShape& shape = args.setup.shape;
  const int64_t chunks = bias_chunks(shape), C = shape.channels;
  float* const first = chunks == 1 ? args.grad_bias : workspace;
  launcher.template run<BiasBody>(
      chunks * blocks_for(C),
      0,
      BiasTask<S>{
          shape.batch,
          shape.steps,
          C,
          args.setup.lengths,
          args.grad_y,
          first});
  launch_sums(launcher, first, chunks, C, args.grad_bias);
}

/// Whether a gradient of logits that all positions share is wanted.
template <class S>
bool sums_positions(const ConvBackward<S>& args) {
  return args.setup.logits_of == LogitsOf::kHead && args.grad_logits != nullptr;
}

/// The task of a backward pass but for its workspace; `limit` is the launcher's
/// shared_limit().
template <class S>
ConvTask<S> backward_task(const ConvBackward<S>& args, int64_t limit) {
  auto task = conv_task<S>(
      args.setup,
      ConvPass::kBackward,
      limit,
      {args.x, args.grad_y, args.grad_x},
      nullptr);
  task.x = args.x;
  task.grad_y = args.grad_y;
  task.out = args.grad_x;
  task.grad_logits = args.grad_logits;
  return task;
}

/// Elements of the sums over positions, with those of the later stages.
inline int64_t weight_elements(const ConvPlan& plan, const ConvShape& shape) {
  return sum_elements(plan.units, shape.heads * shape.kernel_size);
}

template <class S>
int64_t backward_workspace(const ConvBackward<S>& args, int64_t limit) {
  const ConvShape& shape = args.setup.shape;
  int64_t elements = 0;
  if (is_empty(shape))
    return elements;
  if (sums_positions(args))
    elements += weight_elements(backward_task(args, limit).plan, shape);
  if (args.grad_bias != nullptr)
    elements += sum_elements(bias_chunks(shape), shape.channels);
  return elements;
}

/// Without positions gradients are zero.
template <class S, class Launcher>
void run_empty_backward(Launcher& launcher, const ConvBackward<S>& args) {
  const ConvShape& shape = args.setup.shape;
  const auto clear = [&](void* to, int64_t bytes) {
    if (bytes > 0)
      launcher.template run<ZeroBody>(
          blocks_for(bytes),
          0,
          ZeroTask{static_cast<char*>(to), bytes});
  };
  if (sums_positions(args))
    clear(
        args.grad_logits,
        shape.heads * shape.kernel_size *
            (args.setup.logits.storage == Storage::kFloat ? 4 : 2));
  if (args.grad_bias != nullptr)
    clear(args.grad_bias, shape.channels * static_cast<int64_t>(sizeof(float)));
}

template <class S, class Launcher>
void run_conv_backward(Launcher& launcher, const ConvBackward<S>& args) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return run_empty_backward(launcher, args);
  ConvTask<S> task = backward_task(args, launcher.shared_limit());
  const bool per_row = is_per_row(args.setup, task.taps);
  float* workspace = args.workspace;
  if (sums_positions(args)) {
    task.sums = workspace;
    workspace += weight_elements(task.plan, shape);
  }
  if (args.grad_logits != nullptr || args.grad_x != nullptr)
    launch_conv</*kBackward=*/true>(launcher, task, per_row);
  if (sums_positions(args)) {
    WeightTask<S> last;
    last.taps = task.taps;
    last.is_logit = per_row;
    last.grad_logits = args.grad_logits;
    last.sums = launch_sums(
        launcher,
        task.sums,
        task.plan.units,
        shape.heads * shape.kernel_size,
        nullptr);
    launcher.template run<WeightBody>(shape.heads, last.shared(), last);
  }
  if (args.grad_bias != nullptr)
    launch_bias(launcher, args, workspace);
}

}  // namespace seqconv::kernels::cuda
