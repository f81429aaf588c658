#pragma once

#include "kernels/conv/conv_products.h"

/// Convolution with taps of their own at every position, from logits that
/// may be shared (strides of zero). The taps of a tile are made in the
/// first-level cache just before they are used. The backward pass makes them
/// again, together with those of the K-1 positions around the tile that its
/// inputs also feed: a little more softmax instead of writes that tiles would
/// have to share.
namespace seqconv::kernels {

template <class S, class L, class A = AccumulatorOf<S>>
class PositionForward {
 public:
  PositionForward(
      const ConvForward<S, L>& args,
      const Logits<const L>& logits,
      const Execution& run)
      : args_(args),
        ops_(conv_kernels<S, A>(run.isa)),
        logits_(logits),
        taps_(args.shape, tap_options(args), logits, run.isa),
        plan_(cache_plan(
            run,
            args.shape,
            args.y,
            {.read = args.shape.channels + logits.row_stride,
             .light = few_taps(args.shape),
             .early = true})) {}

  /// A few rows at a time, whose taps stay in the first-level cache.
  void operator()(const ConvPlace& at, const ConvPlace&) {
    const int64_t step = rows_together(at.heads * taps_.pitch());
    for (int64_t t = 0; t < at.rows; t += step)
      convolve(at.part(t, step));
  }

 private:
  void convolve(const ConvPlace& at) {
    const ConvShape& shape = args_.shape;
    const int64_t real = at.real();
    if (real > 0)
      taps_.make(
          {.batch = at.batch,
           .first = at.first,
           .rows = real,
           .head = at.head,
           .heads = at.heads,
           .valid = at.valid});
    convolve_place(
        ops_,
        shape,
        at,
        {.padding_left = shape.padding_left,
         .taps =
             {.data = taps_.taps(0, 0),
              .head_stride = taps_.pitch(),
              .tap_t = taps_.row_stride() - 1,
              .tap_r = 1},
         .in = args_.x,
         .out = args_.y,
         .bias = args_.bias,
         .plan = plan_,
         .prefetch = prefetch_after(at)});
  }

  /// What the rows after those of a place need: making taps tears the reading
  /// of rows apart.
  PrefetchPolicy prefetch_after(const ConvPlace& at) const {
    const int64_t K = args_.shape.kernel_size;
    const L* const logits =
        logits_.data + logits_.index(at.batch, at.first + at.rows, at.head * K);
    const int64_t bytes = logits_.shared() ? 0 : K * int64_t{sizeof(L)};
    // Less than half a line for a head comes by itself. Where taps are few,
    // prefetching costs more than their work hides, unless memory is waited
    // for.
    return {
        .in = few_taps(args_.shape) ? plan_.from_memory : plan_.prefetches,
        .lines = reinterpret_cast<const char*>(logits),
        .lines_of_row = (bytes + kCacheLine / 2) / kCacheLine};
  }

  const ConvForward<S, L>& args_;
  const ConvKernels<S, A>& ops_;
  const Logits<const L> logits_;
  TapRows<L, A> taps_;
  const CachePlan plan_;
};

template <class S, class L, class A = AccumulatorOf<S>>
class PositionBackward {
 public:
  PositionBackward(
      const ConvBackward<S, L>& args,
      const Logits<const L>& logits,
      const Execution& run)
      : args_(args),
        shape_(args.shape),
        ops_(conv_kernels<S, A>(run.isa)),
        taps_(shape_, tap_options(args), logits, run.isa),
        products_(shape_, args.x, args.grad_y, ops_, /*paired=*/true),
        plan_(plan(args, logits, run)),
        own_logits_(!logits.shared()) {}

  static CachePlan plan(
      const ConvBackward<S, L>& args,
      const Logits<const L>& logits,
      const Execution& run) {
    return cache_plan(
        run,
        args.shape,
        args.grad_x,
        {.read = 2 * args.shape.channels + logits.row_stride,
         .also = logits.row_stride,
         .light = few_taps(args.shape)});
  }

  /// Writes grad_x there, unless it is null, and the gradients of the logits of
  /// the real positions, rows of all heads of the place, `stride` apart, to
  /// `out`, unless that is.
  void operator()(
      const ConvPlace& at,
      const ConvPlace& next,
      L* out,
      int64_t stride) {
    const int64_t real = at.real();
    // Positions around feed grad_x alone.
    const bool around = args_.grad_x != nullptr;
    const int64_t K = shape_.kernel_size;
    const int64_t before = around ? K - 1 - shape_.padding_left : 0;
    const TapBlock block = {
        .batch = at.batch,
        .first = at.first - before,
        .rows = real + (around ? K - 1 : 0),
        .head = at.head,
        .heads = at.heads,
        .valid = at.valid};
    if (real > 0)
      taps_.make_normalized(block);
    if (args_.grad_x != nullptr)
      convolve(at, next);
    if (real == 0 || out == nullptr)
      return;
    grad_.reserve(real * taps_.row_stride() + kTapSlack);
    for (int64_t h = 0; h < at.heads; ++h)
      make_products(at, h, next);
    taps_.backward(block, before, real, grad_.data(), out, stride);
  }

 private:
  /// The gradient of x.
  void convolve(const ConvPlace& at, const ConvPlace& next) {
    const int64_t K = shape_.kernel_size, before = K - 1 - shape_.padding_left;
    // Input s feeds output s - before + i through its tap K-1-i.
    convolve_heads(
        ops_,
        shape_,
        at,
        next,
        {.padding_left = before,
         .taps =
             {.data = at.real() > 0 ? taps_.taps(0, 0) + K - 1 : nullptr,
              .head_stride = taps_.pitch(),
              .tap_t = 1,
              .tap_r = taps_.row_stride() - 1},
         .in = args_.grad_y,
         .out = args_.grad_x,
         .plan = {.streams = plan_.streams, .from_memory = from_memory(at)}},
        /*prefetch_out=*/!many_taps(),
        [&](PrefetchRows& next_rows, const ConvPlace& rows) {
          if (own_logits_)
            prefetch_rows(next_rows, shape_, rows, args_.logits, K, before);
        });
  }

  /// The gradients of the taps of head h of the place.
  void make_products(const ConvPlace& at, int64_t h, const ConvPlace& next) {
    const int64_t K = shape_.kernel_size, R = shape_.head_channels();
    const int64_t row_stride = taps_.row_stride();
    const ConvPlace then = at.after(h, next);
    PrefetchRows next_rows;
    if (from_memory(at)) {
      products_.prefetch_inputs(next_rows, then);
      if (many_taps() && !plan_.streams && args_.grad_x != nullptr)
        prefetch_rows(next_rows, shape_, then, args_.grad_x, R);
      if (h == 0 && own_logits_)
        prefetch_rows(next_rows, shape_, next, args_.grad_logits, K);
    }
    products_.run(
        at,
        (at.head + h) * R,
        R,
        next_rows,
        [&](int64_t row, const ProductTile<S, A>& tile) {
          ops_.tap_products(
              tile,
              grad_.data() + row * row_stride + h * taps_.pitch(),
              row_stride);
        });
  }

  /// Whole rows in the caches come by themselves.
  bool from_memory(const ConvPlace& at) const {
    return plan_.from_memory || at.heads < shape_.heads;
  }

  /// Their products take long enough to prefetch for the convolution too.
  bool many_taps() const { return shape_.kernel_size > 16; }

  const ConvBackward<S, L>& args_;
  const ConvShape& shape_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A> taps_;
  Scratch<A> grad_;  // [rows, heads, pitch]
  ConvProducts<S, A> products_;
  const CachePlan plan_;
  const bool own_logits_;  ///< of every position
};

template <class S, class L>
void position_conv_forward(
    const ConvForward<S, L>& args,
    const Logits<const L>& logits,
    const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t step = forward_rows(shape);
  const int64_t heads = heads_of_rows(shape);
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * (shape.head_channels() + 8) * shape.kernel_size,
      run,
      [&] { return PositionForward<S, L>(args, logits, run); });
}

/// Logits of all positions, [B, T, H, K].
template <class L>
Logits<L> position_logits(const ConvShape& shape, L* data) {
  const int64_t row = shape.heads * shape.kernel_size;
  return {data, shape.steps * row, row};
}

template <class S, class L>
void position_conv_backward(
    const ConvBackward<S, L>& args,
    const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t K = shape.kernel_size, H = shape.heads;
  const auto logits = position_logits(shape, args.logits);
  const auto [step, heads] =
      backward_place(shape, PositionBackward<S, L>::plan(args, logits, run));
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * (shape.head_channels() + 8) * K * 2,
      run,
      [&] {
        return [&, work = PositionBackward<S, L>(args, logits, run)](
                   const ConvPlace& at,
                   const ConvPlace& next) mutable {
          if (args.grad_logits == nullptr)
            return work(at, next, nullptr, 0);
          L* const out = args.grad_logits +
              ((at.batch * shape.steps + at.first) * H + at.head) * K;
          zero_rows(out, H * K, at.heads * K, at.real(), at.rows);
          work(at, next, out, H * K);
        };
      });
}

}  // namespace seqconv::kernels
