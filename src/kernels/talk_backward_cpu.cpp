#include "kernels/talk_tiles.h"

/// Each tile owns some rows of grad_x and adds up all windows of the
/// neighbourhood that reach into them, as a difference array. Windows are
/// clipped to the tile, so that there are no atomics and no shared writes.
namespace seqconv::kernels {
namespace {

/// How far the windows of a strip of one sequence reach from their positions.
struct Reach {
  int64_t left = 0;
  int64_t right = 0;
};

/// Rows of grad_x of a tile.
constexpr int64_t kGradRows = 128;

template <class S, class O, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(const TalkBackward<S, O>& args, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_ops<S, A>(isa)),
        offset_ops_(row_ops<O, A>(isa)),
        scale_(A(1) / static_cast<A>(args.shape.window())) {}

  /// grad_x of a tile of a strip.
  void
  input_gradient(const TalkStrip& strip, int64_t tile, const Reach& reach) {
    const int64_t T = args_.shape.steps, C = args_.shape.channels;
    const int64_t first = tile * kGradRows,
                  rows = std::min(kGradRows, T - first);
    const int64_t valid = valid_rows(args_.lengths, strip.batch, T);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    const int64_t at = strip.batch * T * C + strip.channel;
    zero_rows(args_.grad_x + at, C, strip.channels, first + real, first + rows);
    if (real == 0)
      return;
    const int64_t from = std::max<int64_t>(0, first - reach.right);
    const int64_t to = std::min(valid, first + real + reach.left);
    windows_.make(strip, from, to - from, valid, first);
    steps_.reserve((real + 1) * kTalkChannels);
    ops_.input_gradient(
        {.windows = windows_.get(),
         .lane_windows = strip.lanes,
         .rows = to - from,
         .channels = strip.channels,
         .scale = scale_,
         .g = args_.grad_y + at + from * C,
         .g_stride = C,
         .span = real,
         .steps = steps_.data(),
         .grad_x = args_.grad_x + at + first * C,
         .grad_x_stride = C});
  }

  /// Gradients of the offsets of one head: max_left * x[border] / window where
  /// the border is fractional, else 0; on the right likewise.
  void offset_gradient(int64_t b, int64_t h, int64_t tile) {
    const TalkShape& shape = args_.shape;
    const int64_t T = shape.steps, C = shape.channels, H = shape.heads;
    const int64_t R = shape.head_channels();
    const int64_t first = tile * kGradRows,
                  rows = std::min(kGradRows, T - first);
    const int64_t valid = valid_rows(args_.lengths, b, T);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    left_.reserve(kGradRows + kTalkLanes);
    right_.reserve(kGradRows + kTalkLanes);
    left_.fill_zero(rows);
    right_.fill_zero(rows);
    if (real > 0) {
      const int64_t at = b * T * C + h * R;
      const TalkStrip strip{.batch = b, .channel = h * R, .channels = R};
      windows_.make(strip, first, real, valid, /*origin=*/0);
      ops_.edge_products(
          {.windows = windows_.get(),
           .rows = real,
           .channels = R,
           .g = args_.grad_y + at + first * C,
           .g_stride = C,
           .x = args_.x + at,
           .x_stride = C,
           .left = left_.data(),
           .right = right_.data()});
    }
    const int64_t out = (b * T + first) * H + h;
    store(left_, shape.max_left, rows, args_.grad_offset_left + out);
    if (args_.grad_offset_right != nullptr)
      store(right_, shape.max_right, rows, args_.grad_offset_right + out);
  }

 private:
  void store(Scratch<A>& sums, int64_t most, int64_t rows, O* out) {
    const A scale = static_cast<A>(most) * scale_;
    narrow_.reserve(rows);
    for (int64_t t = 0; t < rows; ++t)
      sums.data()[t] *= scale;
    offset_ops_.narrow(sums.data(), rows, narrow_.data());
    for (int64_t t = 0; t < rows; ++t)
      out[t * args_.shape.heads] = narrow_.data()[t];
  }

  const TalkBackward<S, O>& args_;
  WindowMaker<O> windows_;
  const TalkOps<S, A>& ops_;
  const RowOps<O, A>& offset_ops_;
  A scale_;
  Scratch<A> steps_;
  Scratch<A> left_;
  Scratch<A> right_;
  Scratch<O> narrow_;
};

template <class O>
Reach reach_of(WindowMaker<O>& maker, const TalkStrip& strip, int64_t valid) {
  Reach reach;
  for (int64_t first = 0; first < valid; first += kGradRows) {
    const int64_t rows = std::min(kGradRows, valid - first);
    maker.make(strip, first, rows, valid, first);
    const auto w = maker.get();
    const int64_t lanes = strip.lanes ? kTalkLanes : 1;
    for (int64_t i = 0; i < rows * lanes; ++i) {
      const int64_t t = i / lanes;
      const int64_t low = std::min(w.low_edge[i], w.high[i]);
      const int64_t high = std::max(w.high_edge[i], w.low[i]);
      reach.left = std::max(reach.left, t - low);
      reach.right = std::max(reach.right, high - t);
    }
  }
  return reach;
}

/// The furthest reach of every strip of every sequence, [B, strips].
template <class S, class O>
std::vector<Reach> all_reaches(
    const TalkBackward<S, O>& args,
    const TalkStrips& strips,
    const Execution& run) {
  const TalkShape& shape = args.shape;
  std::vector<Reach> reaches(static_cast<size_t>(shape.batch * strips.count()));
  run.parallel_for(
      shape.batch * strips.count(),
      grain_for(shape.steps * 16),
      [&](int64_t begin, int64_t end) {
        WindowMaker<O> maker(
            shape,
            args.offset_left,
            args.offset_right,
            run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t b = item / strips.count();
          const TalkStrip strip = strips.get(b, item % strips.count());
          const int64_t valid = valid_rows(args.lengths, b, shape.steps);
          reaches[static_cast<size_t>(item)] = reach_of(maker, strip, valid);
        }
      });
  return reaches;
}

}  // namespace

template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const TalkStrips strips(shape);
  const std::vector<Reach> reaches = all_reaches(args, strips, run);
  const int64_t tiles = ceil_div(shape.steps, kGradRows);
  run.parallel_for(
      shape.batch * tiles * strips.count(),
      grain_for(kGradRows * (kTalkChannels * 10 + 32)),
      [&](int64_t begin, int64_t end) {
        BackwardTile<S, O> work(args, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, strips.count());
          const auto strip = at.batch * strips.count() + at.group;
          work.input_gradient(
              strips.get(at.batch, at.group),
              at.tile,
              reaches[static_cast<size_t>(strip)]);
        }
      });
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(kGradRows * (shape.head_channels() * 4 + 32)),
      [&](int64_t begin, int64_t end) {
        BackwardTile<S, O> work(args, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          work.offset_gradient(at.batch, at.group, at.tile);
        }
      });
}

#define SEQCONV_INSTANTIATE(S, O) \
  template void talk_backward(const TalkBackward<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
