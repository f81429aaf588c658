#include "seqconv/kernels/dynamicconv.h"

#include "kernels/conv_head.h"

/// Tiles of 64 positions x one head: the taps of a tile (softmax, DropConnect)
/// are made in the first-level cache just before they are used. The backward
/// pass makes them again, together with those of the K-1 positions around the
/// tile that its inputs also feed: a little more softmax instead of writes that
/// tiles would have to share.
namespace seqconv::kernels {
namespace {

/// Taps of some positions of one head, before and after DropConnect.
template <class S, class L, class A = AccumulatorOf<S>>
class TileOfTaps {
 public:
  TileOfTaps(
      const ConvShape& shape,
      Normalization normalization,
      const TapDrop& drop,
      Isa isa,
      int64_t most_rows)
      : maker(isa, shape.kernel_size, normalization, drop),
        pitch(maker.pitch()),
        shape_(shape),
        tile_(tile_ops<A>(isa)),
        normalized_(most_rows * pitch),
        factors_(maker.drops() ? most_rows * pitch : 0),
        dropped_(maker.drops() ? most_rows * pitch : 0) {}

  /// Positions [first, first + rows) of sequence b and head h; those outside
  /// [0, valid) become zero.
  void make(
      const L* logits,
      int64_t b,
      int64_t h,
      int64_t first,
      int64_t rows,
      int64_t valid) {
    const int64_t begin = std::clamp<int64_t>(-first, 0, rows);
    const int64_t end = std::clamp<int64_t>(valid - first, begin, rows);
    const int64_t K = shape_.kernel_size, stride = shape_.heads * K;
    const int64_t index = (b * shape_.steps + first + begin) * stride + h * K;
    std::fill_n(normalized_.data(), begin * pitch, A(0));
    std::fill_n(normalized_.data() + end * pitch, (rows - end) * pitch, A(0));
    if (end > begin)
      maker.normalize(logits + index, stride, end - begin, normalized(begin));
    if (!maker.drops())
      return;
    factors_.fill_zero(rows * pitch);
    if (end > begin)
      maker
          .factors(index, stride, end - begin, factors_.data() + begin * pitch);
    std::copy_n(normalized_.data(), rows * pitch, dropped_.data());
    tile_.multiply(dropped_.data(), factors_.data(), rows * pitch);
  }

  A* normalized(int64_t row) { return normalized_.data() + row * pitch; }
  A* factors(int64_t row) {
    return maker.drops() ? factors_.data() + row * pitch : nullptr;
  }
  /// What the convolution uses.
  A* taps(int64_t row) {
    return (maker.drops() ? dropped_ : normalized_).data() + row * pitch;
  }

  TapMaker<L, A> maker;
  const int64_t pitch;

 private:
  const ConvShape& shape_;
  const TileOps<A>& tile_;
  Scratch<A> normalized_;
  Scratch<A> factors_;
  Scratch<A> dropped_;
};

template <class S, class L, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(const ConvBackward<S, L>& args, Isa isa)
      : args_(args),
        shape_(args.shape),
        K_(args.shape.kernel_size),
        step_(tile_rows(K_)),
        rows_(row_ops<S, A>(isa)),
        logit_rows_(row_ops<L, A>(isa)),
        tile_(tile_ops<A>(isa)),
        convolver_(shape_, isa),
        taps_(shape_, args.normalization, args.drop, isa, step_ + K_ - 1),
        transposed_(step_ * taps_.pitch),
        grad_taps_(step_ * taps_.pitch),
        x_((step_ + K_ - 1) * convolver_.pitch()),
        grad_(step_ * convolver_.pitch()) {}

  void run(int64_t b, int64_t tile, int64_t h) {
    const int64_t first = tile * step_;
    const int64_t rows = std::min(step_, shape_.steps - first);
    const int64_t valid = valid_rows(args_.lengths, b, shape_.steps);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    const int64_t before = K_ - 1 - shape_.padding_left;
    const auto grad_y = head_plane(args_.grad_y, shape_, b, h, valid);
    const auto grad_x = head_plane(args_.grad_x, shape_, b, h, valid);
    const auto out = head_logits(args_.grad_kernels, b, h);
    zero_rows(out, first + real, rows - real);
    if (real == 0) {
      zero_rows(grad_x, first, rows);
      return;
    }
    taps_.make(args_.kernels, b, h, first - before, real + K_ - 1, valid);
    transpose_taps(real);
    convolver_.run(
        grad_y,
        grad_x,
        first,
        rows,
        before,
        {transposed_.data(), taps_.pitch});
    tap_gradient(head_plane(args_.x, shape_, b, h, valid), grad_y, first, real);
    const auto raw = head_logits(args_.kernels, b, h);
    taps_.maker.backward(
        raw.data + first * raw.stride,
        raw.stride,
        taps_.normalized(before),
        taps_.factors(before),
        real,
        grad_taps_.data());
    logit_rows_.store(
        grad_taps_.data(),
        taps_.pitch,
        real,
        K_,
        out.data + first * out.stride,
        out.stride);
  }

 private:
  template <class P>
  Plane<P> head_logits(P* logits, int64_t b, int64_t h) const {
    const int64_t stride = shape_.heads * K_;
    P* const data = logits + b * shape_.steps * stride + h * K_;
    return {data, stride, K_, shape_.steps};
  }

  /// Input s feeds the outputs s - before .. s - before + K - 1, the i-th of
  /// them through its tap K-1-i.
  void transpose_taps(int64_t rows) {
    for (int64_t s = 0; s < rows; ++s)
      for (int64_t i = 0; i < K_; ++i)
        transposed_.data()[s * taps_.pitch + i] = taps_.taps(s + i)[K_ - 1 - i];
  }

  void tap_gradient(
      const Plane<const S>& x,
      const Plane<const S>& grad_y,
      int64_t first,
      int64_t rows) {
    grad_taps_.fill_zero(rows * taps_.pitch);
    for (int64_t c = 0; c < x.width; c += kTileChannels<A>) {
      const int64_t width = std::min(x.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      stage(
          rows_,
          x.channels(c, width),
          first - shape_.padding_left,
          rows + K_ - 1,
          x_.data(),
          pitch);
      stage(rows_, grad_y.channels(c, width), first, rows, grad_.data(), pitch);
      tile_.tap_gradient(
          x_.data(),
          grad_.data(),
          pitch,
          rows,
          K_,
          grad_taps_.data(),
          taps_.pitch);
    }
  }

  const ConvBackward<S, L>& args_;
  const ConvShape& shape_;
  int64_t K_;
  int64_t step_;
  const RowOps<S, A>& rows_;
  const RowOps<L, A>& logit_rows_;
  const TileOps<A>& tile_;
  HeadConvolver<S> convolver_;
  TileOfTaps<S, L> taps_;
  Scratch<A> transposed_;  // [rows, tap pitch]
  Scratch<A> grad_taps_;   // [rows, tap pitch]
  Scratch<A> x_;           // [rows + K - 1, pitch]
  Scratch<A> grad_;        // [rows, pitch]
};

}  // namespace

template <class S, class L>
void dynamicconv_forward(const ConvForward<S, L>& args, const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t step = tile_rows(shape.kernel_size);
  const int64_t tiles = ceil_div(shape.steps, step);
  const int64_t R = shape.head_channels();
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(step * (R + 8) * shape.kernel_size),
      [&](int64_t begin, int64_t end) {
        HeadConvolver<S> convolver(shape, run.isa);
        TileOfTaps<S, L> taps(
            shape,
            args.normalization,
            args.drop,
            run.isa,
            step);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          const int64_t valid = valid_rows(args.lengths, at.batch, shape.steps);
          const int64_t first = at.tile * step;
          const int64_t rows = std::min(step, shape.steps - first);
          taps.make(args.kernels, at.batch, at.head, first, rows, valid);
          convolver.run(
              head_plane(args.x, shape, at.batch, at.head, valid),
              head_plane(args.y, shape, at.batch, at.head, valid),
              first,
              rows,
              shape.padding_left,
              {taps.taps(0), taps.pitch},
              args.bias == nullptr ? nullptr : args.bias + at.head * R);
        }
      });
}

template <class S, class L>
void dynamicconv_backward(
    const ConvBackward<S, L>& args,
    const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t step = tile_rows(shape.kernel_size);
  const int64_t tiles = ceil_div(shape.steps, step);
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(step * (shape.head_channels() + 8) * shape.kernel_size * 2),
      [&](int64_t begin, int64_t end) {
        BackwardTile<S, L> work(args, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          work.run(at.batch, at.tile, at.head);
        }
      });
}

template <class S, class L>
void dynamicconv_step(const ConvStep<S, L>& args, const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const int64_t K = shape.kernel_size;
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(shape.steps * (shape.head_channels() + 8) * K),
      [&](int64_t begin, int64_t end) {
        HeadStepper<S> stepper(shape, args.state, run.isa);
        const TapMaker<L, A> maker(run.isa, K, args.normalization, {});
        Scratch<A> taps(maker.pitch());
        for (int64_t item = begin; item < end; ++item) {
          const int64_t row = item / shape.heads, head = item % shape.heads;
          for (int64_t t = 0; t < shape.steps; ++t) {
            const int64_t at = (row * shape.steps + t) * shape.heads + head;
            maker.normalize(args.kernels + at * K, K, 1, taps.data());
            stepper.run(args.x, args.y, row, head, t, taps.data(), args.bias);
          }
        }
      });
}

#define SEQCONV_INSTANTIATE(S, L)     \
  template void dynamicconv_forward(  \
      const ConvForward<S, L>&,       \
      const Execution&);              \
  template void dynamicconv_backward( \
      const ConvBackward<S, L>&,      \
      const Execution&);              \
  template void dynamicconv_step(const ConvStep<S, L>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
