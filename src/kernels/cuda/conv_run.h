#pragma once

#include <initializer_list>
#include <type_traits>

#include "kernels/cuda/conv_band.h"
#include "kernels/cuda/conv_fma.h"
#include "kernels/cuda/conv_step.h"
#include "kernels/cuda/launches.h"
#include "seqconv/base/error.h"

/// From the arguments of a convolution to launches (launches.h): the forward
/// pass, the step, and what the backward pass (conv_backward_run.h) shares.
namespace seqconv::kernels::cuda {

/// Which logits a convolution has: one a head, or one a position too.
enum class LogitsOf { kHead, kPosition };

template <bool kPerRow, int V>
struct ForwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    conv_forward_body<kPerRow, V>(block, task);
  }
};
template <bool kPerRow, int kRows>
struct BandForwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    band_forward_body<kPerRow, kRows>(block, task);
  }
};
struct StepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvStepTask<S>& task) {
    conv_step_body(block, task);
  }
};

inline TapSource tap_source(const ConvSetup& setup, LogitsOf kind) {
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
  if (kind == LogitsOf::kPosition) {
    source.step_stride = static_cast<int>(position);
    source.batch_stride = position * shape.steps;
  }
  source.kernel_size = static_cast<int>(shape.kernel_size);
  const int groups = tap_groups(source.kernel_size);
  source.lane_bits = bits_for(groups * kTapGroup, 5);
  source.part_bits = bits_for(groups, 1);
  source.padding_left = static_cast<int>(shape.padding_left);
  source.normalization = setup.normalization;
  source.renormalize_edges =
      setup.renormalize_edges && setup.normalization == Normalization::kSoftmax;
  source.scale = 1.0 / (1.0 - setup.drop.p);
  source.threshold = drop_threshold(setup.drop.p);
  source.seed = drops ? setup.drop.seed : nullptr;
  source.mask = setup.drop.mask;
  return source;
}

/// Whether taps differ between positions.
inline bool is_per_row(const TapSource& source, LogitsOf kind) {
  return kind == LogitsOf::kPosition || source.renormalize_edges;
}

template <class S>
ConvTask<S> conv_task(const ConvSetup& setup, LogitsOf kind) {
  ConvTask<S> task;
  task.taps = tap_source(setup, kind);
  task.batch = setup.shape.batch;
  task.steps = setup.shape.steps;
  task.channels = setup.shape.channels;
  task.all_heads = static_cast<int>(setup.shape.heads);
  task.head_channels = static_cast<int>(setup.shape.head_channels());
  task.lengths = setup.lengths;
  return task;
}

/// Tensor cores take taps in two halves of x's type. Those of bfloat16 hold 16
/// bits of any tap; float16 has steps of 2^-24, too coarse but for rows whose
/// taps sum to one, and ends at 65504.
template <class S>
bool taps_fit(const TapSource& source) {
  return StorageOf<S>::kValue == Storage::kBFloat16 ||
      (source.normalization == Normalization::kSoftmax && source.scale < 65504);
}

/// The plan by FMA, with four channels to a thread where heads and addresses
/// allow.
template <class S>
void plan_by_fma(
    ConvTask<S>& task,
    ConvPlanRequest request,
    std::initializer_list<const void*> tensors) {
  if (sizeof(S) < 8 && request.shape.head_channels() % 4 == 0 &&
      are_aligned(tensors, 4 * sizeof(S)) &&
      is_aligned(task.bias, 4 * sizeof(AccumulatorOf<S>)))
    request.vector = 4;
  task.plan = plan_fma(request);
  task.plan.vector = request.vector;
}

/// Says what a kernel that no block holds wants.
inline void
check_kernel_fits(bool fits, int64_t limit, const ConvShape& shape) {
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

/// How a pass over these tensors is run: on tensor cores where they can, else
/// by FMA.
template <class S>
void choose_plan(
    ConvTask<S>& task,
    const ConvShape& shape,
    ConvPass pass,
    bool per_row,
    int64_t limit,
    std::initializer_list<const void*> tensors) {
  using A = AccumulatorOf<S>;
  const ConvPlanRequest request = {
      shape,
      pass,
      per_row,
      /*vector=*/1,
      sizeof(S),
      sizeof(A),
      min(limit, kMaxShared)};
  if (sizeof(S) == 2 && taps_fit<S>(task.taps) && are_aligned(tensors, 16))
    task.plan = plan_band(request);
  if (task.plan.rows == 0)
    plan_by_fma(task, request, tensors);
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
}

/// Queues the body that the plan is for. Logits for every position always
/// differ from row to row.
template <
    template <bool, int>
    class Fma,
    template <bool, int>
    class Band,
    LogitsOf kKind,
    class S,
    class Launcher>
void launch_conv(Launcher& launcher, const ConvTask<S>& task, bool per_row) {
  const auto run = [&](auto body) {
    launcher.template run<decltype(body)>(
        task.plan.blocks,
        kConvThreads,
        task.plan.shared,
        task);
  };
  const auto choose = [&](auto rows) {
    constexpr bool kPerRow = decltype(rows)::value;
    if constexpr (sizeof(S) == 2) {
      if (task.plan.uses_bands)
        return task.plan.rows == 64 ? run(Band<kPerRow, 64>{})
                                    : run(Band<kPerRow, 32>{});
    }
    if constexpr (sizeof(S) < 8) {
      if (task.plan.vector == 4)
        return run(Fma<kPerRow, 4>{});
    }
    run(Fma<kPerRow, 1>{});
  };
  if constexpr (kKind == LogitsOf::kHead) {
    if (!per_row)
      return choose(std::false_type{});
  }
  choose(std::true_type{});
}

template <LogitsOf kKind, class S, class Launcher>
void run_conv_forward(Launcher& launcher, const ConvForward<S>& args) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return;
  ConvTask<S> task = conv_task<S>(args.setup, kKind);
  task.x = args.x;
  task.bias = args.bias;
  task.out = args.y;
  const bool per_row = is_per_row(task.taps, kKind);
  choose_plan(
      task,
      shape,
      ConvPass::kForward,
      per_row,
      launcher.shared_limit(),
      {args.x, args.y});
  launch_conv<ForwardBody, BandForwardBody, kKind>(launcher, task, per_row);
}

template <LogitsOf kKind, class S, class Launcher>
void run_conv_step(Launcher& launcher, const ConvStep<S>& args) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return;
  ConvStepTask<S> task;
  task.taps = tap_source(args.setup, kKind);
  task.taps.padding_left = task.taps.kernel_size - 1;
  task.per_row = kKind == LogitsOf::kPosition;
  task.steps = shape.steps;
  task.channels = shape.channels;
  task.all_heads = static_cast<int>(shape.heads);
  task.head_channels = static_cast<int>(shape.head_channels());
  task.heads = step_heads(shape, kConvThreads, sizeof(AccumulatorOf<S>));
  task.groups = chunks_of(task.all_heads, task.heads);
  task.x = args.x;
  task.bias = args.bias;
  task.state = args.state;
  task.position = args.position;
  task.y = args.y;
  const int64_t limit = min(launcher.shared_limit(), kMaxShared);
  check_kernel_fits(task.shared() <= limit, limit, shape);
  launcher.template run<StepBody>(
      shape.batch * task.groups,
      kConvThreads,
      task.shared(),
      task);
}

}  // namespace seqconv::kernels::cuda
