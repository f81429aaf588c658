#include "seqconv/kernels/lightconv.h"

#include <vector>

#include "kernels/conv_head.h"

/// Tiles of 64 positions x one head. The forward pass and the gradient of x are
/// the same loop (the latter with reversed taps); the gradient of the weights
/// is summed tile by tile in double, in pieces fixed by the sizes.
namespace seqconv::kernels {
namespace {

/// Taps [H, pitch] of all heads, before and after DropConnect.
template <class A>
struct StaticTaps {
  TapMaker<A> maker;
  int64_t pitch;
  Scratch<A> normalized;
  Scratch<A> factors;
  Scratch<A> dropped;

  StaticTaps(
      const ConvShape& shape,
      const A* weight,
      Normalization normalization,
      const TapDrop& drop,
      Isa isa)
      : maker(isa, shape.kernel_size, normalization, drop),
        pitch(maker.pitch()),
        normalized(shape.heads * pitch),
        factors(shape.heads * pitch),
        dropped(shape.heads * pitch) {
    const int64_t H = shape.heads, K = shape.kernel_size;
    maker.normalize(weight, K, H, normalized.data());
    std::copy_n(normalized.data(), H * pitch, dropped.data());
    if (!maker.drops())
      return;
    maker.factors(0, K, H, factors.data());
    tile_ops<A>(isa).multiply(dropped.data(), factors.data(), H * pitch);
  }

  TileTaps<A> head(int64_t h) { return {dropped.data() + h * pitch, 0}; }
};

/// Pieces of the weight gradient's sum over tiles.
constexpr int64_t kMostPieces = 32;

template <class S, class A = AccumulatorOf<S>>
class BackwardPiece {
 public:
  BackwardPiece(
      const ConvBackward<S, A>& args,
      const A* reversed_taps,
      int64_t tap_pitch,
      Isa isa)
      : args_(args),
        reversed_(reversed_taps),
        tap_pitch_(tap_pitch),
        rows_(row_ops<S, A>(isa)),
        tile_(tile_ops<A>(isa)),
        convolver_(args.shape, isa),
        step_(tile_rows(args.shape.kernel_size)),
        x_((step_ + args.shape.kernel_size - 1) * convolver_.pitch()),
        grad_(step_ * convolver_.pitch()) {}

  /// Tile `tile` of sequence b and head h: writes grad_x there, adds the
  /// gradient of the head's taps to `sums` [K].
  void run(int64_t b, int64_t tile, int64_t h, double* sums) {
    const ConvShape& shape = args_.shape;
    const int64_t first = tile * step_;
    const int64_t rows = std::min(step_, shape.steps - first);
    const int64_t valid = valid_rows(args_.lengths, b, shape.steps);
    const auto grad_y = head_plane(args_.grad_y, shape, b, h, valid);
    convolver_.run(
        grad_y,
        head_plane(args_.grad_x, shape, b, h, valid),
        first,
        rows,
        shape.kernel_size - 1 - shape.padding_left,
        {reversed_ + h * tap_pitch_, 0});
    const int64_t real = std::min(rows, valid - first);
    if (real > 0)
      add_tap_gradient(
          head_plane(args_.x, shape, b, h, valid),
          grad_y,
          first,
          real,
          sums);
  }

 private:
  void add_tap_gradient(
      const Plane<const S>& x,
      const Plane<const S>& grad_y,
      int64_t first,
      int64_t rows,
      double* sums) {
    const int64_t K = args_.shape.kernel_size;
    for (int64_t c = 0; c < x.width; c += kTileChannels<A>) {
      const int64_t width = std::min(x.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      stage(
          rows_,
          x.channels(c, width),
          first - args_.shape.padding_left,
          rows + K - 1,
          x_.data(),
          pitch);
      stage(rows_, grad_y.channels(c, width), first, rows, grad_.data(), pitch);
      tile_.shared_tap_gradient(x_.data(), grad_.data(), pitch, rows, K, sums);
    }
  }

  const ConvBackward<S, A>& args_;
  const A* reversed_;
  int64_t tap_pitch_;
  const RowOps<S, A>& rows_;
  const TileOps<A>& tile_;
  HeadConvolver<S> convolver_;
  int64_t step_;
  Scratch<A> x_;
  Scratch<A> grad_;
};

/// partial [pieces, H, K] -> grad_weight [H, K], through DropConnect and
/// softmax.
template <class A>
void finish_weight_gradient(
    const ConvShape& shape,
    const std::vector<double>& partial,
    const A* weight,
    StaticTaps<A>& taps,
    A* grad_weight) {
  const int64_t H = shape.heads, K = shape.kernel_size;
  Scratch<A> grad(H * taps.pitch);
  grad.fill_zero(H * taps.pitch);
  const int64_t pieces = static_cast<int64_t>(partial.size()) / (H * K);
  for (int64_t i = 0; i < H * K; ++i) {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece)
      sum += partial[static_cast<size_t>(piece * H * K + i)];
    grad.data()[i / K * taps.pitch + i % K] = static_cast<A>(sum);
  }
  taps.maker.backward(
      weight,
      K,
      taps.normalized.data(),
      taps.factors.data(),
      H,
      grad.data());
  for (int64_t h = 0; h < H; ++h)
    std::copy_n(grad.data() + h * taps.pitch, K, grad_weight + h * K);
}

}  // namespace

template <class S>
void lightconv_forward(
    const ConvForward<S, AccumulatorOf<S>>& args,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  StaticTaps<A> taps(
      shape,
      args.kernels,
      args.normalization,
      args.drop,
      run.isa);
  const int64_t step = tile_rows(shape.kernel_size);
  const int64_t tiles = ceil_div(shape.steps, step);
  const int64_t R = shape.head_channels();
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(step * R * shape.kernel_size),
      [&](int64_t begin, int64_t end) {
        HeadConvolver<S> convolver(shape, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          const int64_t valid = valid_rows(args.lengths, at.batch, shape.steps);
          const int64_t first = at.tile * step;
          convolver.run(
              head_plane(args.x, shape, at.batch, at.head, valid),
              head_plane(args.y, shape, at.batch, at.head, valid),
              first,
              std::min(step, shape.steps - first),
              shape.padding_left,
              taps.head(at.head),
              args.bias == nullptr ? nullptr : args.bias + at.head * R);
        }
      });
}

template <class S>
void lightconv_backward(
    const ConvBackward<S, AccumulatorOf<S>>& args,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const int64_t H = shape.heads, K = shape.kernel_size;
  StaticTaps<A> taps(
      shape,
      args.kernels,
      args.normalization,
      args.drop,
      run.isa);
  Scratch<A> reversed(H * taps.pitch);
  for (int64_t h = 0; h < H; ++h)
    std::reverse_copy(
        taps.head(h).data,
        taps.head(h).data + K,
        reversed.data() + h * taps.pitch);
  const int64_t step = tile_rows(K);
  const int64_t tiles = ceil_div(shape.steps, step), all = shape.batch * tiles;
  const int64_t pieces = std::min(all, kMostPieces);
  std::vector<double> partial(static_cast<size_t>(pieces * H * K), 0.0);
  run.parallel_for(
      pieces * H,
      grain_for(step * shape.head_channels() * K * 2),
      [&](int64_t begin, int64_t end) {
        BackwardPiece<S> work(args, reversed.data(), taps.pitch, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t piece = item / H, h = item % H;
          double* const sums =
              partial.data() + static_cast<size_t>((piece * H + h) * K);
          for (int64_t n = piece * all / pieces; n < (piece + 1) * all / pieces;
               ++n)
            work.run(n / tiles, n % tiles, h, sums);
        }
      });
  finish_weight_gradient(shape, partial, args.kernels, taps, args.grad_kernels);
}

template <class S>
void lightconv_step(
    const ConvStep<S, AccumulatorOf<S>>& args,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  StaticTaps<A> taps(shape, args.kernels, args.normalization, {}, run.isa);
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(shape.steps * shape.head_channels() * shape.kernel_size),
      [&](int64_t begin, int64_t end) {
        HeadStepper<S> stepper(shape, args.state, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t row = item / shape.heads, head = item % shape.heads;
          for (int64_t t = 0; t < shape.steps; ++t)
            stepper.run(
                args.x,
                args.y,
                row,
                head,
                t,
                taps.head(head).data,
                args.bias);
        }
      });
}

template <class S>
void bias_gradient(
    const ConvShape& shape,
    const int64_t* lengths,
    const S* grad_y,
    AccumulatorOf<S>* grad_bias,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  constexpr int64_t kStep = 64;
  const auto& rows = row_ops<S, A>(run.isa);
  const auto& tile = tile_ops<A>(run.isa);
  const int64_t T = shape.steps, C = shape.channels;
  const int64_t width = kTileChannels<A>;
  run.parallel_for(
      ceil_div(C, width),
      grain_for(shape.batch * T * width),
      [&](int64_t begin, int64_t end) {
        Scratch<A> staged(kStep * width);
        std::vector<double> sums(static_cast<size_t>(width));
        for (int64_t item = begin; item < end; ++item) {
          std::fill(sums.begin(), sums.end(), 0.0);
          const int64_t c = item * width, n = std::min(width, C - c);
          for (int64_t b = 0; b < shape.batch; ++b) {
            const int64_t valid = valid_rows(lengths, b, T);
            for (int64_t t = 0; t < valid; t += kStep) {
              const int64_t count = std::min(kStep, valid - t);
              rows.load(
                  grad_y + (b * T + t) * C + c,
                  C,
                  count,
                  n,
                  staged.data(),
                  width);
              tile.column_sums(staged.data(), width, count, sums.data());
            }
          }
          std::copy_n(sums.begin(), n, grad_bias + c);
        }
      });
}

#define SEQCONV_INSTANTIATE(S)                  \
  template void lightconv_forward(              \
      const ConvForward<S, AccumulatorOf<S>>&,  \
      const Execution&);                        \
  template void lightconv_backward(             \
      const ConvBackward<S, AccumulatorOf<S>>&, \
      const Execution&);                        \
  template void lightconv_step(                 \
      const ConvStep<S, AccumulatorOf<S>>&,     \
      const Execution&);                        \
  template void bias_gradient(                  \
      const ConvShape&,                         \
      const int64_t*,                           \
      const S*,                                 \
      AccumulatorOf<S>*,                        \
      const Execution&);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
SEQCONV_INSTANTIATE(BFloat16)

}  // namespace seqconv::kernels
