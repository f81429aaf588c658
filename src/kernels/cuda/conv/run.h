#pragma once

#include "kernels/cuda/common/sums.h"
#include "kernels/cuda/conv/band.h"
#include "kernels/cuda/conv/fma.h"
#include "kernels/cuda/conv/step.h"
#include "kernels/cuda/conv/weight.h"

/// From the arguments of a convolution to launches (launches.h).
namespace seqconv::internal::kernels::cuda {

inline TapSource tap_source(const ConvSetup& setup) {
  const ConvShape& shape = setup.shape;
  SEQCONV_CHECK(
      shape.kernel_size <= kMaxShared,
      "[cuda] kernel size must be at most ",
      kMaxShared,
      ", but got K = ",
      shape.kernel_size);
  const int64_t position = shape.heads * shape.kernel_size;
  SEQCONV_CHECK(
      position < int64_t{1} << 31,
      "[cuda] logits of a position must be fewer than 2^31 elements, but got ",
      shape.heads,
      " heads of ",
      shape.kernel_size);
  const bool drops = setup.drop.seed != nullptr && setup.drop.p > 0;
  TapSource source;
  source.logits = setup.logits;
  if (setup.logits_of == LogitsOf::kPosition) {
    source.step_stride = static_cast<int>(position);
    source.batch_stride = position * shape.steps;
  }
  source.kernel_size = static_cast<int>(shape.kernel_size);
  const int groups = tap_groups(source.kernel_size);
  source.lane_bits = bits_for(groups * kTapGroup, 5);
  source.part_bits = bits_for(groups, 1);
  source.padding_left = static_cast<int>(shape.padding_left);
  source.softmax = setup.softmax;
  source.renormalize_edges = setup.renormalize_edges && setup.softmax;
  source.per_row = setup.logits_of == LogitsOf::kPosition || source.renormalize_edges;
  source.scale = static_cast<float>(1.0 / (1.0 - setup.drop.p));
  source.threshold = drop_threshold(setup.drop.p);
  source.seed = drops ? setup.drop.seed : nullptr;
  source.mask = setup.drop.mask;
  return source;
}

/// Says what a kernel that no block holds wants.
inline void check_kernel_fits(bool fits, int64_t limit, const ConvShape& shape) {
  SEQCONV_CHECK(
      fits,
      "[cuda] the kernel must fit into the shared memory of a block (",
      limit,
      " bytes on this device), but got K = ",
      shape.kernel_size,
      " for heads of ",
      shape.head_channels(),
      " channels");
}

/// Tensor cores take taps in two halves of x's type. Those of bfloat16 hold 16
/// bits of any tap; float16 has steps of 2^-24, too coarse but for rows whose
/// taps sum to one, and ends at 65504.
template <class S>
bool taps_fit(const TapSource& source) {
  return StorageOf<S>::kValue == Storage::kBFloat16 || (source.softmax && source.scale < 65504);
}

/// A pass but for what it reads and writes; `tensors` are all of that but for
/// a bias, which is `bias`. Runs on tensor cores where they can, else by FMA,
/// with four channels to a thread where heads and addresses allow.
template <class S>
ConvTask<S> conv_task(
    const ConvSetup& setup,
    bool backward,
    const Device& device,
    std::initializer_list<const void*> tensors,
    const float* bias) {
  const ConvShape& shape = setup.shape;
  ConvTask<S> task;
  task.taps = tap_source(setup);
  task.set_shape(shape, setup.lengths);
  task.bias = bias;
  ConvPlanRequest request = {
      shape,
      backward,
      task.taps.per_row,
      /*vector=*/1,
      sizeof(S),
      min(device.shared, kMaxShared),
      StorageOf<S>::kValue != Storage::kBFloat16 || device.multiplies_bfloat16};
  if (taps_fit<S>(task.taps) && are_aligned(tensors, 16))
    task.plan = plan_band(request);
  if (task.plan.rows == 0) {
    if (shape.head_channels() % 4 == 0 && are_aligned(tensors, 4 * sizeof(S)) &&
        are_aligned({bias}, 16))
      request.vector = 4;
    task.plan = plan_fma(request);
  }
  check_kernel_fits(task.plan.rows > 0, request.limit, shape);
  SEQCONV_CHECK(
      shape.batch * task.plan.tiles < int64_t{1} << 31,
      "[cuda] there must be fewer than 2^31 tiles of ",
      task.plan.rows,
      " positions, but got a batch of ",
      shape.batch,
      " with ",
      shape.steps,
      " steps");
  return task;
}

/// Queues the pass that the task is for, by the path of its plan.
template <bool kBackward, class S, class Launcher>
void launch_conv(Launcher& launcher, const ConvTask<S>& task) {
  const auto run = [&]<class Path>(Path) {
    launcher.template run<ConvBody<Path, kBackward>>(task.plan.blocks, task.plan.shared, task);
  };
  const auto choose = [&]<bool kPerRow>(std::bool_constant<kPerRow>) {
    if constexpr (sizeof(S) == 2) {
      if (task.plan.uses_bands)
        return task.plan.rows == 64 ? run(BandPath<kPerRow, 64>{}) : run(BandPath<kPerRow, 32>{});
    }
    task.plan.vector == 4 ? run(FmaPath<kPerRow, 4>{}) : run(FmaPath<kPerRow, 1>{});
  };
  task.taps.per_row ? choose(std::true_type{}) : choose(std::false_type{});
}

template <class S, class Launcher>
void run(Launcher& launcher, const ConvForward<S>& args) {
  if (is_empty(args.setup.shape))
    return;
  auto task = conv_task<S>(
      args.setup,
      /*backward=*/false,
      launcher.device(),
      {args.x, args.y},
      args.bias);
  task.x = args.x;
  task.out = args.y;
  launch_conv</*kBackward=*/false>(launcher, task);
}

template <class S, class Launcher>
void run(Launcher& launcher, const ConvStep<S>& args) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return;
  ConvStepTask<S> task;
  task.taps = tap_source(args.setup);
  task.taps.padding_left = task.taps.kernel_size - 1;
  task.set_shape(shape, nullptr);
  task.plan = plan_step(shape);
  task.x = args.x;
  task.bias = args.bias;
  task.state = args.state;
  task.position = args.position;
  task.out = args.y;
  const int64_t limit = min(launcher.device().shared, kMaxShared);
  check_kernel_fits(task.shared() <= limit, limit, shape);
  launcher.template run<ConvStepBody>(task.plan.blocks, task.shared(), task);
}

/// Whether a gradient of logits that all positions share is wanted.
template <class S>
bool sums_positions(const ConvBackward<S>& args) {
  return args.setup.logits_of == LogitsOf::kHead && args.grad_logits != nullptr;
}

/// The task of a backward pass but for its workspace.
template <class S>
ConvTask<S> backward_task(const ConvBackward<S>& args, const Device& device) {
  auto task = conv_task<S>(
      args.setup,
      /*backward=*/true,
      device,
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
  const int64_t width = shape.heads * shape.kernel_size;
  return plan.units * width + sum_elements(plan.units, width);
}

template <class S>
int64_t backward_workspace(const ConvBackward<S>& args, const Device& device) {
  const ConvShape& shape = args.setup.shape;
  int64_t elements = 0;
  if (sums_positions(args))
    elements += weight_elements(backward_task(args, device).plan, shape);
  if (args.grad_bias != nullptr)
    elements += sum_elements(shape.batch * shape.steps, shape.channels);
  return elements;
}

/// The gradient of logits from the sums of blocks over positions. Without
/// positions no block makes any, and the last stages write zeros.
template <class S, class Launcher>
void launch_weight(Launcher& launcher, const ConvTask<S>& task, const ConvShape& shape) {
  const int64_t units = task.plan.units;
  const int64_t width = shape.heads * shape.kernel_size;
  WeightTask<S> last;
  last.taps = task.taps;
  last.is_logit = task.taps.per_row || is_empty(shape);
  last.grad_logits = task.grad_logits;
  last.sums = launch_sums(
      launcher,
      SumTask<float>{task.sums, units, width, max<int64_t>(1, units)},
      task.sums + units * width,
      nullptr);
  launcher.template run<WeightBody>(shape.heads, last.shared(), last);
}

template <class S, class Launcher>
void run(Launcher& launcher, const ConvBackward<S>& args) {
  const ConvShape& shape = args.setup.shape;
  ConvTask<S> task = backward_task(args, launcher.device());
  float* workspace = args.workspace;
  if (sums_positions(args)) {
    task.sums = workspace;
    workspace += weight_elements(task.plan, shape);
  }
  if (!is_empty(shape) && (args.grad_logits != nullptr || args.grad_x != nullptr))
    launch_conv</*kBackward=*/true>(launcher, task);
  if (sums_positions(args))
    launch_weight(launcher, task, shape);
  if (args.grad_bias != nullptr)
    launch_sums(
        launcher,
        SumTask<S>{
            args.grad_y,
            shape.batch * shape.steps,
            shape.channels,
            max<int64_t>(1, shape.steps),
            args.setup.lengths},
        workspace,
        args.grad_bias);
}

}  // namespace seqconv::internal::kernels::cuda
