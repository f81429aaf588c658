#pragma once

#include "kernels/cuda/short_conv/body.h"
#include "kernels/cuda/short_conv/gradients.h"
#include "kernels/cuda/short_conv/step.h"

/// From the arguments of a short convolution to launches (launches.h).
namespace seqconv::internal::kernels::cuda {

/// Static taps of every channel, to [K, C] from weight [G, K].
template <class S>
struct SpreadTask {
  Beside weight;
  int64_t kernel_size = 1;
  int64_t channels = 0;
  int64_t groups = 1;
  float* to = nullptr;
};

/// A thread for a tap of a channel.
struct SpreadBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const SpreadTask<S>& task) {
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread, C = task.channels, K = task.kernel_size;
      if (at < K * C)
        task.to[at] = beside_at<S>(task.weight, at % C / (C / task.groups) * K + at / C);
    });
  }
};

/// Places of what is made on the way, in bytes of a workspace.
struct ShortConvRoom {
  SharedLayout layout;
  int64_t spans = 0, fixed = 0;

  explicit ShortConvRoom(const ShortConvSetup& setup) {
    const ConvShape& shape = setup.shape;
    if (setup.offsets != nullptr || setup.numbers != nullptr)
      spans = layout.add(shape.batch * shape.steps, sizeof(Span));
    if (setup.weight.data != nullptr)
      fixed = layout.add(shape.kernel_size * shape.channels, sizeof(float));
  }
};

/// Says what a size is that launches cannot take.
inline void check_threads(int64_t threads) {
  SEQCONV_CHECK(
      threads < int64_t{1} << 32,
      "[cuda] a pass of short_conv must have fewer than 2^32 threads, but got ",
      threads);
}

/// Sizes of a pass, with V channels to a thread.
template <class S>
void set_columns(ShortConvTask<S>& task, int V) {
  const Sequences& of = task.sequences;
  task.columns = static_cast<uint32_t>(task.channels / V);
  const int64_t classes = min(task.dilation, of.steps);
  const int64_t runs =
      classes * chunks_of<int64_t>(chunks_of(of.steps, task.dilation), kRunPositions);
  check_threads(of.batch * runs * task.columns);
  task.classes = static_cast<uint32_t>(classes);
  task.runs = static_cast<uint32_t>(runs);
}

/// Points at a place of a workspace.
template <class T>
T* placed(void* workspace, int64_t place) {
  return reinterpret_cast<T*>(static_cast<char*>(workspace) + place);
}

inline Sequences sequences_of(const ShortConvSetup& setup, int64_t dilation, Span* spans) {
  const ConvShape& shape = setup.shape;
  Sequences of;
  of.batch = shape.batch;
  of.steps = shape.steps;
  of.lengths = setup.lengths;
  of.offsets = setup.offsets;
  of.count = setup.offsets != nullptr ? setup.sequences : shape.batch;
  of.numbers = setup.numbers;
  if (of.has_spans())
    of.spans = spans;
  of.reach = (max<int64_t>(shape.kernel_size, kRunPositions) - 1) * dilation;
  return of;
}

/// The task of a pass but for its gradients and results.
template <class S>
ShortConvTask<S> short_conv_task(
    const ShortConvSetup& setup, const S* x, const S* past, void* workspace) {
  const ConvShape& shape = setup.shape;
  SEQCONV_CHECK(
      shape.kernel_size < INT32_MAX && shape.channels < INT32_MAX,
      "[cuda] short_conv takes fewer than 2^31 taps and channels, but got K = ",
      shape.kernel_size,
      ", C = ",
      shape.channels);
  const ShortConvRoom room(setup);
  ShortConvTask<S> task;
  // Without inputs before, no tap of another position meets an input from there on.
  task.dilation =
      past != nullptr ? shape.dilation : min(shape.dilation, max<int64_t>(1, shape.steps));
  task.sequences = sequences_of(setup, task.dilation, placed<Span>(workspace, room.spans));
  task.channels = shape.channels;
  task.kernel_size = static_cast<int>(shape.kernel_size);
  task.padding_left = static_cast<int>(shape.padding_left);
  task.heads = shape.heads;
  task.head_channels = shape.head_channels();
  if (setup.weight.data != nullptr)
    task.fixed = placed<float>(workspace, room.fixed);
  task.dynamic = setup.dynamic;
  task.bias = setup.bias;
  task.end = setup.end;
  task.x = x;
  task.past = past;
  return task;
}

/// Bytes of kTapPack dynamic taps.
template <class S>
size_t tap_pack_bytes(const Beside& dynamic) {
  return kTapPack * (dynamic.storage == Storage::kFloat ? sizeof(float) : sizeof(S));
}

/// Makes spans and static taps.
template <class S, class Launcher>
void launch_preparation(
    Launcher& launcher, const ShortConvSetup& setup, const ShortConvTask<S>& task, float* fixed) {
  if (task.sequences.has_spans())
    launcher.template run<SpansBody>(blocks_for(task.sequences.rows()), 0, task.sequences);
  if (setup.weight.data == nullptr)
    return;
  const SpreadTask<S> spread = {
      setup.weight, setup.shape.kernel_size, setup.shape.channels, setup.groups, fixed};
  launcher.template run<SpreadBody>(blocks_for(spread.kernel_size * spread.channels), 0, spread);
}

/// Queues a pass over positions; `tensors` are all that it reads or writes in
/// columns.
template <class Source, class End, class S, class Launcher>
void launch_positions(
    Launcher& launcher, ShortConvTask<S> task, std::initializer_list<const void*> tensors) {
  const bool is_dynamic = task.dynamic.data != nullptr;
  const auto run = [&]<int V>(std::integral_constant<int, V>) {
    set_columns(task, V);
    const Sequences& of = task.sequences;
    const int64_t blocks = blocks_for(of.batch * task.runs * task.columns);
    if (is_dynamic)
      launcher.template run<ShortConvBody<V, true, Source, End>>(blocks, 0, task);
    else
      launcher.template run<ShortConvBody<V, false, Source, End>>(blocks, 0, task);
  };
  with_vector<S, kColumnBytes>(is_dynamic ? task.head_channels : task.channels, tensors, run);
}

template <class S, class Launcher>
void run(Launcher& launcher, const ShortConvForward<S>& args) {
  const ShortConvSetup& setup = args.setup;
  if (is_empty(setup.shape))
    return;
  auto task = short_conv_task<S>(setup, args.x, args.past, args.workspace);
  task.out = args.y;
  task.packs_taps = task.kernel_size % kTapPack == 0 &&
      are_aligned({setup.dynamic.data}, tap_pack_bytes<S>(setup.dynamic));
  launch_preparation(
      launcher, setup, task, placed<float>(args.workspace, ShortConvRoom(setup).fixed));
  launch_positions<OfInputs, EndInOutputs>(launcher, task, {args.x, args.past, args.y});
}

template <class S>
int64_t forward_workspace(const ShortConvForward<S>& args) {
  return ShortConvRoom(args.setup).layout.size();
}

/// Chunks of rows whose products are summed together.
struct ProductsPlan {
  int64_t chunk_rows = 1;
  int64_t chunks = 0;

  explicit ProductsPlan(const ConvShape& shape) {
    const int64_t rows = shape.batch * shape.steps;
    if (rows == 0)
      return;
    const int64_t groups = chunks_of<int64_t>(shape.kernel_size + 1, kTapPack);
    const int64_t wanted = min(kManyThreads / (shape.channels * groups), rows / kProductRows);
    chunk_rows = chunks_of(rows, max<int64_t>(1, wanted));
    chunks = chunks_of(rows, chunk_rows);
  }
};

/// Places of what a backward pass makes besides.
template <class S>
struct GradientRoom : ShortConvRoom {
  int64_t grad_sums = 0, sums = 0, stages = 0;
  int64_t first = 0, last = 0;  ///< of the taps of ProductsTask
  ProductsPlan plan;

  explicit GradientRoom(const ShortConvBackward<S>& args)
      : ShortConvRoom(args.setup), plan(args.setup.shape) {
    const ConvShape& shape = args.setup.shape;
    if (args.setup.end.activation != ConvActivation::kNone)
      grad_sums = layout.add(shape.batch * shape.steps * shape.channels, sizeof(float));
    first = args.grad_weight != nullptr ? 0 : shape.kernel_size;
    last = shape.kernel_size + (args.grad_bias != nullptr ? 1 : 0);
    if (first == last)
      return;
    const int64_t width = (last - first) * shape.channels;
    sums = layout.add(plan.chunks * width, sizeof(float));
    stages = layout.add(sum_elements(plan.chunks, width), sizeof(float));
  }
};

template <class S>
int64_t backward_workspace(const ShortConvBackward<S>& args) {
  return GradientRoom<S>(args).layout.size();
}

/// The gradient of dynamic taps, from those of sums in G.
template <class G, class S, class Launcher>
void launch_grad_dynamic(Launcher& launcher, const ShortConvTask<S>& task, void* grad_dynamic) {
  GradDynamicTask<S> products{task};
  products.grad_dynamic = grad_dynamic;
  const auto run = [&]<int V>(std::integral_constant<int, V>) {
    const int64_t packs = task.head_channels / V;
    products.lane_bits = bits_for(static_cast<int>(packs), 5);
    const int64_t threads = task.sequences.rows() * task.heads << products.lane_bits;
    launcher.template run<GradDynamicBody<V, G>>(blocks_for(threads), 0, products);
  };
  with_vector<S, kColumnBytes>(task.head_channels, {task.x, task.past, task.gradient}, run);
}

/// Sums of products [last - first, C] over all rows, from gradients of sums in G.
template <class G, class S, class Launcher>
const float* launch_products(
    Launcher& launcher, const ShortConvTask<S>& task, const GradientRoom<S>& room, void* memory) {
  ProductsTask<S> products{task};
  products.first = static_cast<int>(room.first);
  products.last = static_cast<int>(room.last);
  products.chunk_rows = room.plan.chunk_rows;
  products.chunks = room.plan.chunks;
  products.sums = placed<float>(memory, room.sums);
  const auto run = [&]<int V>(std::integral_constant<int, V>) {
    products.columns = static_cast<uint32_t>(task.channels / V);
    check_threads(products.threads());
    launcher.template run<ProductsBody<V, G>>(blocks_for(products.threads()), 0, products);
  };
  if (products.chunks > 0)
    with_vector<S, kColumnBytes>(task.channels, {task.x, task.past, task.gradient}, run);
  const SumTask<float> chunks = {
      products.sums, products.chunks, products.width(), max<int64_t>(1, products.chunks)};
  return launch_sums(launcher, chunks, placed<float>(memory, room.stages), nullptr);
}

/// The gradients of static taps and of the bias, from sums of products.
template <class S, class Launcher>
void launch_group_sums(
    Launcher& launcher,
    const ShortConvBackward<S>& args,
    const GradientRoom<S>& room,
    const float* sums) {
  const int64_t C = args.setup.shape.channels, K = args.setup.shape.kernel_size;
  const auto add_groups = [&](const float* from, int64_t taps, int64_t groups, float* to) {
    const int bits = bits_for(static_cast<int>(C / groups), 5);
    launcher.template run<GroupSumBody>(
        blocks_for(groups * taps << bits), 0, GroupSumTask{from, taps, C, groups, bits, to});
  };
  if (args.grad_weight != nullptr)
    add_groups(sums, K, args.setup.groups, args.grad_weight);
  if (args.grad_bias != nullptr)
    add_groups(sums + (K - room.first) * C, 1, C, args.grad_bias);
}

/// All gradients that are wanted, from those of sums in G.
template <class G, class S, class Launcher>
void launch_gradients(
    Launcher& launcher,
    const ShortConvBackward<S>& args,
    ShortConvTask<S> task,
    const GradientRoom<S>& room) {
  const ConvShape& shape = args.setup.shape;
  if (args.grad_x != nullptr && !is_empty(shape)) {
    task.out = args.grad_x;
    launch_positions<OfGradients<G>, EndInGradInputs>(
        launcher, task, {task.gradient, args.grad_y, args.grad_x});
  }
  if (args.grad_dynamic != nullptr && !is_empty(shape))
    launch_grad_dynamic<G>(launcher, task, args.grad_dynamic);
  if (room.first != room.last)
    launch_group_sums(
        launcher, args, room, launch_products<G>(launcher, task, room, args.workspace));
  const int64_t before = task.sequences.count * task.past_rows() * shape.channels;
  if (args.grad_past == nullptr || before == 0)
    return;
  task.out = args.grad_past;
  if (task.dynamic.data != nullptr)
    launcher.template run<GradPastBody<true, G>>(blocks_for(before), 0, task);
  else
    launcher.template run<GradPastBody<false, G>>(blocks_for(before), 0, task);
}

template <class S, class Launcher>
void run(Launcher& launcher, const ShortConvBackward<S>& args) {
  const ShortConvSetup& setup = args.setup;
  const GradientRoom<S> room(args);
  auto task = short_conv_task<S>(setup, args.x, args.past, args.workspace);
  task.grad_y = args.grad_y;
  task.gradient = args.grad_y;
  task.packs_taps = task.kernel_size % kTapPack == 0 &&
      are_aligned({setup.dynamic.data, args.grad_dynamic}, tap_pack_bytes<S>(setup.dynamic));
  if (!is_empty(setup.shape))
    launch_preparation(launcher, setup, task, placed<float>(args.workspace, room.fixed));
  if (setup.end.activation == ConvActivation::kNone)
    return launch_gradients<S>(launcher, args, task, room);
  task.grad_sums = placed<float>(args.workspace, room.grad_sums);
  task.gradient = task.grad_sums;
  if (!is_empty(setup.shape))
    launch_positions<OfInputs, EndInGradSums>(launcher, task, {args.x, args.past, args.grad_y});
  launch_gradients<float>(launcher, args, task, room);
}

template <class S, class Launcher>
void run(Launcher& launcher, const ShortConvStep<S>& args) {
  const ConvShape& shape = args.setup.shape;
  if (is_empty(shape))
    return;
  launcher.template run<ShortConvStepBody>(blocks_for(shape.batch * shape.channels), 0, args);
  launcher.template run<AdvanceBody>(blocks_for(shape.batch), 0, args);
}

}  // namespace seqconv::internal::kernels::cuda
