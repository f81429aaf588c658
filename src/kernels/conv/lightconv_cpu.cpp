#include "seqconv/kernels/conv.h"

#include "kernels/conv/position_conv.h"

/// The forward pass and the gradient of x are the same loop (the latter with
/// the taps reversed); the gradient of the logits is summed tile by tile in
/// double, in chunks fixed by the sizes.
namespace seqconv::kernels {
namespace {

/// Heads of fewer channels are convolved many at once, with a tap for every
/// channel.
constexpr int64_t kNarrowHead = 16;

/// Taps of all heads, ready for the convolution and for its backward pass.
template <class A>
class StaticTaps {
 public:
  StaticTaps(
      const ConvShape& shape,
      const TapOptions& options,
      const A* logits,
      Isa isa)
      : shape_(shape),
        all_{.rows = 1, .heads = shape.heads, .valid = 1},
        rows_(shape, options, {logits}, isa) {
    rows_.make_normalized(all_);
    const int64_t K = shape.kernel_size, pitch = rows_.pitch();
    mirrored_.reserve(shape.heads * pitch);
    for (int64_t h = 0; h < shape.heads; ++h)
      std::reverse_copy(
          rows_.taps(0, h),
          rows_.taps(0, h) + K,
          mirrored_.data() + h * pitch);
  }

  /// The heads of a place. Reversed: the gradient of the input.
  HeadTaps<A> heads(const ConvPlace& at, bool reversed) {
    const int64_t K = shape_.kernel_size, C = shape_.channels;
    const int64_t R = shape_.head_channels();
    // Input row r meets tap K-1 - (r - t): of a mirrored kernel forward.
    if (R >= kNarrowHead)
      return {
          .data = (reversed ? rows_.taps(0, 0) : mirrored_.data()) +
              at.head * rows_.pitch() + K - 1,
          .head_stride = rows_.pitch(),
          .tap_t = 1,
          .tap_r = -1};
    const int64_t first = reversed ? K - 1 : 0, way = reversed ? -1 : 1;
    spread();
    return {
        .data = lanes_.data() + first * C + at.head * R,
        .tap_t = -way * C,
        .tap_r = way * C,
        .lanes = true};
  }

  /// Makes what heads() needs; before threads use it.
  void spread() {
    const int64_t K = shape_.kernel_size, C = shape_.channels;
    const int64_t R = shape_.head_channels();
    if (R >= kNarrowHead || spread_)
      return;
    lanes_.reserve(K * C);
    for (int64_t j = 0; j < K; ++j)
      for (int64_t c = 0; c < C; ++c)
        lanes_.data()[j * C + c] = rows_.taps(0, c / R)[j];
    spread_ = true;
  }

  /// Elements from the taps of a head to those of the next.
  int64_t pitch() const { return rows_.pitch(); }

  /// Gradients of the taps [H, pitch], which it may change, -> of the logits
  /// [H, K].
  void backward(A* grad_taps, A* grad_logits) {
    rows_.backward(all_, 0, 1, grad_taps, grad_logits, 0);
  }

 private:
  const ConvShape& shape_;
  TapBlock all_;
  TapRows<A> rows_;
  Scratch<A> mirrored_;
  bool spread_ = false;
  Scratch<A> lanes_;  // [K, C]
};

/// Chunks of the logits' gradient's sum over tiles.
constexpr int64_t kMaxChunks = 32;

/// How the sum over tiles is cut: chunk by chunk, group of heads by group.
struct Chunks {
  int64_t step;
  int64_t tiles;  ///< of a sequence
  int64_t all;    ///< tiles of the batch
  int64_t count;
  int64_t heads;  ///< of a group
  int64_t groups;

  Chunks(const ConvShape& shape, int64_t rows_of_tile, int64_t heads_of_group)
      : step(rows_of_tile),
        tiles(ceil_div(shape.steps, step)),
        all(shape.batch * tiles),
        count(std::min(all, kMaxChunks)),
        heads(heads_of_group),
        groups(ceil_div(shape.heads, heads)) {}

  int64_t begin(int64_t chunk) const { return chunk * all / count; }
};

/// Calls work(place, next place, chunk) for the tiles of every chunk and group
/// of heads, those of one chunk and group in order and in one thread.
template <class MakeWork>
void for_chunks(
    const ConvShape& shape,
    const int64_t* lengths,
    const Chunks& chunks,
    const Execution& run,
    const MakeWork& make_work) {
  run.parallel_for(
      chunks.count * chunks.groups,
      grain_for(
          chunks.step * chunks.heads * shape.head_channels() *
          shape.kernel_size * 2),
      [&](int64_t begin, int64_t end) {
        const PlaceGrid grid{shape, lengths, chunks.step, chunks.heads};
        auto work = make_work();
        for (int64_t item = begin; item < end; ++item) {
          const int64_t chunk = item / chunks.groups;
          const int64_t last = chunks.begin(chunk + 1);
          const auto place = [&](int64_t n) {
            return grid.get(
                std::min(n, last - 1) * chunks.groups + item % chunks.groups);
          };
          for (int64_t n = chunks.begin(chunk); n < last; ++n)
            work(place(n), place(n + 1), chunk);
        }
      });
}

/// Sums [chunks, H, K] -> [H, K], in order; heads of `total` are `pitch` apart.
template <class A>
void add_chunks(
    const std::vector<double>& partial,
    const ConvShape& shape,
    A* total,
    int64_t pitch) {
  const int64_t K = shape.kernel_size, count = shape.heads * K;
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (size_t n = static_cast<size_t>(i); n < partial.size();
         n += static_cast<size_t>(count))
      sum += partial[n];
    total[i / K * pitch + i % K] = static_cast<A>(sum);
  }
}

/// One tile of the backward pass.
template <class S, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(
      const ConvBackward<S, A>& args,
      StaticTaps<A>& taps,
      std::vector<double>& partial,
      const CachePlan& plan,
      Isa isa)
      : args_(args),
        taps_(taps),
        partial_(partial),
        ops_(conv_kernels<S, A>(isa)),
        products_(args.shape, args.x, args.grad_y, ops_, /*paired=*/false),
        plan_(plan) {}

  void operator()(const ConvPlace& at, const ConvPlace& next, int64_t chunk) {
    const ConvShape& shape = args_.shape;
    const int64_t K = shape.kernel_size;
    if (args_.grad_x != nullptr)
      convolve_heads(
          ops_,
          shape,
          at,
          next,
          {.padding_left = K - 1 - shape.padding_left,
           .taps = taps_.heads(at, /*reversed=*/true),
           .in = args_.grad_y,
           .out = args_.grad_x,
           .plan = plan_},
          /*prefetch_out=*/true,
          [](PrefetchRows&, const ConvPlace&) {});
    if (at.real() == 0 || args_.grad_logits == nullptr)
      return;
    double* const sums = partial_.data() +
        static_cast<size_t>((chunk * shape.heads + at.head) * K);
    const int64_t R = shape.head_channels();
    if (R < kNarrowHead)
      return add_narrow(at, next, sums);
    for (int64_t h = 0; h < at.heads; ++h)
      products_.run(
          at,
          (at.head + h) * R,
          R,
          next_rows(at.after(h, next)),
          [&](int64_t, const ProductTile<S, A>& tile) {
            ops_.shared_tap_products(tile, sums + h * K);
          });
  }

 private:
  PrefetchRows next_rows(const ConvPlace& next) const {
    PrefetchRows next_rows;
    if (plan_.from_memory)
      products_.prefetch_inputs(next_rows, next);
    return next_rows;
  }

  void add_narrow(const ConvPlace& at, const ConvPlace& next, double* sums) {
    const ConvShape& shape = args_.shape;
    const int64_t K = shape.kernel_size, R = shape.head_channels();
    const int64_t begin = at.head * R;
    products_.run(
        at,
        begin,
        at.heads * R,
        next_rows(next),
        [&](int64_t, const ProductTile<S, A>& tile) {
          const int64_t first =
              (tile.g - args_.grad_y) % shape.channels - begin;
          lanes_.assign(static_cast<size_t>(K * tile.channels), 0.0);
          ops_.lane_tap_products(tile, lanes_.data());
          for (int64_t j = 0; j < K; ++j)
            for (int64_t c = 0; c < tile.channels; ++c)
              sums[(first + c) / R * K + j] +=
                  lanes_[static_cast<size_t>(j * tile.channels + c)];
        });
  }

  const ConvBackward<S, A>& args_;
  StaticTaps<A>& taps_;
  std::vector<double>& partial_;
  const ConvKernels<S, A>& ops_;
  ConvProducts<S, A> products_;
  const CachePlan plan_;
  std::vector<double> lanes_;  // [K, channels]
};

/// Where edges are renormalised every position has taps of its own.
template <class S, class A = AccumulatorOf<S>>
void backward_with_edges(const ConvBackward<S, A>& args, const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t H = shape.heads, K = shape.kernel_size;
  using Work = PositionBackward<S, A>;
  const auto [rows, heads] =
      backward_place(shape, Work::plan(args, {args.logits}, run));
  const Chunks chunks(shape, rows, heads);
  std::vector<double> partial(static_cast<size_t>(chunks.count * H * K), 0.0);
  for_chunks(shape, args.lengths, chunks, run, [&] {
    const int64_t max = chunks.step * chunks.heads * K;
    return [&,
            work = Work(args, {args.logits}, run),
            grad = std::vector<A>(static_cast<size_t>(max))](
               const ConvPlace& at,
               const ConvPlace& next,
               int64_t chunk) mutable {
      const int64_t width = at.heads * K;
      work(
          at,
          next,
          args.grad_logits == nullptr ? nullptr : grad.data(),
          width);
      if (args.grad_logits == nullptr)
        return;
      double* const sums =
          partial.data() + static_cast<size_t>((chunk * H + at.head) * K);
      for (int64_t i = 0; i < at.real() * width; ++i)
        sums[i % width] += static_cast<double>(grad[static_cast<size_t>(i)]);
    };
  });
  if (args.grad_logits != nullptr)
    add_chunks(partial, shape, args.grad_logits, K);
}

}  // namespace

template <class S>
void lightconv_forward(
    const ConvForward<S, AccumulatorOf<S>>& args,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  if (args.renormalize_edges)
    return position_conv_forward(args, Logits<const A>{args.logits}, run);
  StaticTaps<A> taps(shape, tap_options(args), args.logits, run.isa);
  taps.spread();
  const int64_t step = forward_rows(shape);
  const int64_t heads = heads_of_rows(shape);
  const CachePlan plan = cache_plan(
      run,
      shape,
      args.y,
      {.read = shape.channels, .light = few_taps(shape), .early = true});
  const ConvKernels<S, A>& ops = conv_kernels<S, A>(run.isa);
  const auto work = [&](const ConvPlace& at, const ConvPlace&) {
    convolve_place(
        ops,
        shape,
        at,
        {.padding_left = shape.padding_left,
         .taps = taps.heads(at, /*reversed=*/false),
         .in = args.x,
         .out = args.y,
         .bias = args.bias,
         .plan = plan,
         .prefetch = {.in = plan.from_memory}});
  };
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * shape.head_channels() * shape.kernel_size,
      run,
      [&] { return std::cref(work); });
}

template <class S>
void lightconv_backward(
    const ConvBackward<S, AccumulatorOf<S>>& args,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  if (args.renormalize_edges)
    return backward_with_edges<S>(args, run);
  const int64_t H = shape.heads, K = shape.kernel_size;
  StaticTaps<A> taps(shape, tap_options(args), args.logits, run.isa);
  taps.spread();
  const CachePlan plan = cache_plan(
      run,
      shape,
      args.grad_x,
      {.read = 2 * shape.channels, .light = few_taps(shape)});
  const Chunks chunks(
      shape,
      tile_rows(K),
      plan.from_memory ? std::min<int64_t>(H, 16) : heads_of_rows(shape));
  std::vector<double> partial(static_cast<size_t>(chunks.count * H * K), 0.0);
  for_chunks(shape, args.lengths, chunks, run, [&] {
    return BackwardTile<S>(args, taps, partial, plan, run.isa);
  });
  if (args.grad_logits == nullptr)
    return;
  Scratch<A> grad(H * taps.pitch() + kTapSlack);
  add_chunks(partial, shape, grad.data(), taps.pitch());
  taps.backward(grad.data(), args.grad_logits);
}

#define SEQCONV_INSTANTIATE(S)                  \
  template void lightconv_forward(              \
      const ConvForward<S, AccumulatorOf<S>>&,  \
      const Execution&);                        \
  template void lightconv_backward(             \
      const ConvBackward<S, AccumulatorOf<S>>&, \
      const Execution&);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
SEQCONV_INSTANTIATE(BFloat16)

}  // namespace seqconv::kernels
