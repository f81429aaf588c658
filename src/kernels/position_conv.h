#pragma once

#include "kernels/conv_products.h"

/// Convolution with taps of their own at every position, from raw kernels that
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
      const RawKernels<const L>& raw,
      Isa isa)
      : args_(args),
        own_kernels_(raw.row_stride != 0),
        ops_(row_ops<S, A>(isa)),
        taps_(args.shape, tap_options(args), raw, isa),
        streaming_(streams(args.shape, args.y, 2)) {}

  void operator()(const ConvPlace& at, const ConvPlace& next) {
    const ConvShape& shape = args_.shape;
    const int64_t K = shape.kernel_size, real = at.real();
    if (real > 0)
      taps_.make(
          {.batch = at.batch,
           .first = at.first,
           .rows = real,
           .head = at.head,
           .heads = at.heads,
           .valid = at.valid});
    const HeadTaps<A> taps = {
        .data = taps_.taps(0, 0),
        .head_stride = taps_.head_stride(),
        .tap_t = taps_.pitch() - 1,
        .tap_r = 1};
    convolve_place(
        ops_,
        shape,
        at,
        next,
        {.padding_left = shape.padding_left,
         .taps = taps,
         .in = args_.x,
         .out = args_.y,
         .bias = args_.bias,
         .streaming = streaming_},
        [&](FetchAhead& fetch, const ConvPlace& rows) {
          if (own_kernels_)
            fetch_rows(fetch, shape, rows, args_.kernels, K);
        });
  }

 private:
  const ConvForward<S, L>& args_;
  const bool own_kernels_;  ///< of every position
  const RowOps<S, A>& ops_;
  TapRows<L, A> taps_;
  bool streaming_;
};

template <class S, class L, class A = AccumulatorOf<S>>
class PositionBackward {
 public:
  PositionBackward(
      const ConvBackward<S, L>& args,
      const RawKernels<const L>& raw,
      Isa isa)
      : args_(args),
        shape_(args.shape),
        own_kernels_(raw.row_stride != 0),
        ops_(row_ops<S, A>(isa)),
        taps_(shape_, tap_options(args), raw, isa),
        step_(tile_rows(shape_.kernel_size)),
        grad_(step_ * taps_.pitch() + kTapSlack),
        products_(shape_, args.x, args.grad_y, ops_),
        streaming_(streams(shape_, args.grad_x, 3)) {}

  /// Writes grad_x there, and for every head the gradients of the raw kernels
  /// of the real positions, `stride` apart, from out(head) on; then calls
  /// done(head).
  template <class Out, class Done>
  void run(
      const ConvPlace& at,
      const ConvPlace& next,
      int64_t stride,
      const Out& out,
      const Done& done) {
    const int64_t K = shape_.kernel_size, R = shape_.head_channels();
    const int64_t real = at.real();
    const int64_t before = K - 1 - shape_.padding_left;
    const TapBlock block = {
        .batch = at.batch,
        .first = at.first - before,
        .rows = real + K - 1,
        .head = at.head,
        .heads = at.heads,
        .valid = at.valid};
    if (real > 0)
      taps_.make_normalized(block);
    // Products of many taps take long enough to fetch for both.
    const bool many_taps = K > 16;
    // Input s feeds output s - before + i through its tap K-1-i.
    convolve_place(
        ops_,
        shape_,
        at,
        next,
        {.padding_left = before,
         .taps =
             {.data = real > 0 ? taps_.taps(0, 0) + K - 1 : nullptr,
              .head_stride = taps_.head_stride(),
              .tap_t = 1,
              .tap_r = taps_.pitch() - 1},
         .in = args_.grad_y,
         .out = args_.grad_x,
         .streaming = streaming_,
         .fetch_out = !many_taps,
         .fetch = products_.direct_input()},
        [&](FetchAhead& fetch, const ConvPlace& rows) {
          if (own_kernels_)
            fetch_rows(fetch, shape_, rows, args_.kernels, K, before);
        });
    for (int64_t h = 0; h < at.heads && real > 0; ++h) {
      const ConvPlace then = h + 1 < at.heads ? at.only(h + 1) : next.only(0);
      ProductsAhead ahead;
      products_.fetch_inputs(ahead.products, then);
      if (many_taps && !streaming_)
        fetch_rows(ahead.products, shape_, then, args_.grad_x, R);
      if (h == 0 && own_kernels_)
        fetch_rows(ahead.products, shape_, next, args_.grad_kernels, K);
      products_.run(
          at,
          (at.head + h) * R,
          R,
          ahead,
          [&](int64_t row, const ProductTile<S, A>& tile) {
            ops_.tap_products(
                tile,
                grad_.data() + row * taps_.pitch(),
                taps_.pitch());
          });
      taps_.backward(
          block,
          before,
          real,
          h,
          grad_.data(),
          taps_.pitch(),
          out(at.head + h),
          stride);
      done(at.head + h);
    }
  }

 private:
  const ConvBackward<S, L>& args_;
  const ConvShape& shape_;
  const bool own_kernels_;  ///< of every position
  const RowOps<S, A>& ops_;
  TapRows<L, A> taps_;
  int64_t step_;
  Scratch<A> grad_;  // [rows, pitch]
  ConvProducts<S, A> products_;
  const bool streaming_;
};

/// Heads whose taps are made together, for tiles of `rows` positions.
inline int64_t position_heads(const ConvShape& shape, int64_t rows) {
  return heads_together(shape.heads, rows * shape.kernel_size);
}

template <class S, class L>
void position_conv_forward(
    const ConvForward<S, L>& args,
    const RawKernels<const L>& raw,
    const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t step = tile_rows(shape.kernel_size);
  const int64_t heads = position_heads(shape, step);
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * (shape.head_channels() + 8) * shape.kernel_size,
      run,
      [&] { return PositionForward<S, L>(args, raw, run.isa); });
}

/// Raw kernels of all positions, [B, T, H, K].
template <class L>
RawKernels<L> position_kernels(const ConvShape& shape, L* data) {
  const int64_t row = shape.heads * shape.kernel_size;
  return {data, shape.steps * row, row};
}

template <class S, class L>
void position_conv_backward(
    const ConvBackward<S, L>& args,
    const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t K = shape.kernel_size, H = shape.heads;
  const int64_t step = tile_rows(K);
  const int64_t heads = position_heads(shape, step + K - 1);
  const auto raw = position_kernels(shape, args.kernels);
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * (shape.head_channels() + 8) * K * 2,
      run,
      [&] {
        return [&, work = PositionBackward<S, L>(args, raw, run.isa)](
                   const ConvPlace& at,
                   const ConvPlace& next) mutable {
          L* const out =
              args.grad_kernels + (at.batch * shape.steps + at.first) * H * K;
          zero_rows(out + at.head * K, H * K, at.heads * K, at.real(), at.rows);
          work.run(
              at,
              next,
              H * K,
              [&](int64_t head) { return out + head * K; },
              [](int64_t) {});
        };
      });
}

}  // namespace seqconv::kernels
