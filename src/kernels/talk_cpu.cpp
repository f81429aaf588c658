#include "seqconv/kernels/talk.h"

#include "kernels/talk_window.h"
#include "kernels/tiles.h"

/// Tiles of 64 positions x one head: prefix sums over the rows that the tile's
/// windows reach, started anew for every tile, so that rounding depends on the
/// window and not on T.
namespace seqconv::kernels {
namespace {

template <class S, class O, class A = AccumulatorOf<S>>
class ForwardTile {
 public:
  ForwardTile(const TalkForward<S, O>& args, Isa isa)
      : args_(args),
        source_(
            args.shape.steps,
            args.shape.heads,
            args.shape.max_left,
            args.shape.max_right,
            args.offset_left,
            args.offset_right),
        rows_(row_ops<S, A>(isa)),
        tile_(tile_ops<A>(isa)),
        pitch_(tile_pitch<A>(args.shape.head_channels())),
        out_(kTalkRows * pitch_) {}

  void run(int64_t b, int64_t tile, int64_t h) {
    const TalkShape& shape = args_.shape;
    const int64_t first = tile * kTalkRows;
    const int64_t rows = std::min(kTalkRows, shape.steps - first);
    const int64_t valid = valid_rows(args_.lengths, b, shape.steps);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    const auto x = head_plane(args_.x, shape, b, h, valid);
    const auto y = head_plane(args_.y, shape, b, h, valid);
    zero_rows(y, first + real, rows - real);
    if (real == 0)
      return;
    const RowSpan<A> span =
        tile_windows(source_, b, h, first, real, valid, windows_);
    const int64_t reach = span.end - span.begin;
    x_.reserve(reach * pitch_);
    sums_.reserve((reach + 1) * pitch_);
    for (int64_t c = 0; c < x.width; c += kTileChannels<A>) {
      const int64_t width = std::min(x.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      stage(rows_, x.channels(c, width), span.begin, reach, x_.data(), pitch);
      tile_.prefix_sums(x_.data(), pitch, reach, sums_.data());
      tile_.gather_windows(
          {windows_.data(), real, pitch},
          x_.data(),
          sums_.data(),
          A(1) / static_cast<A>(shape.window()),
          out_.data());
      rows_.store(
          out_.data(),
          pitch,
          real,
          width,
          y.data + first * y.stride + c,
          y.stride);
    }
  }

 private:
  const TalkForward<S, O>& args_;
  Windows<O> source_;
  const RowOps<S, A>& rows_;
  const TileOps<A>& tile_;
  int64_t pitch_;
  std::vector<TileWindow<A>> windows_;
  Scratch<A> x_;
  Scratch<A> sums_;
  Scratch<A> out_;
};

/// One stream of one head of the step form.
template <class S, class O, class A = AccumulatorOf<S>>
class StreamStepper {
 public:
  StreamStepper(const TalkStep<S, O>& args, Isa isa)
      : args_(args),
        source_(
            args.shape.steps,
            args.shape.heads,
            args.shape.max_left,
            args.shape.max_right,
            args.offset_left,
            nullptr),
        rows_(row_ops<S, A>(isa)),
        sums_(lane_pitch<A>(args.shape.head_channels())),
        taps_(args.state.slots + 1) {}

  void run(int64_t row, int64_t head, int64_t t) {
    const TalkShape& shape = args_.shape;
    const int64_t R = shape.head_channels(), C = shape.channels;
    const int64_t at = (row * shape.steps + t) * C + head * R;
    const int64_t slots = args_.state.slots, now = args_.state.position + t;
    S* const ring = args_.state.data + row * slots * C + head * R;
    const int64_t past = fill_taps(row, head, t, now);
    sums_.fill_zero(R);
    if (past > 0) {
      const int64_t oldest = (now - past) % slots;
      const int64_t unbroken = std::min(past, slots - oldest);
      A* const taps = taps_.data();
      rows_.weighted_sum(ring + oldest * C, C, taps, unbroken, sums_.data(), R);
      rows_.weighted_sum(
          ring,
          C,
          taps + unbroken,
          past - unbroken,
          sums_.data(),
          R);
    }
    rows_
        .weighted_sum(args_.x + at, C, taps_.data() + past, 1, sums_.data(), R);
    rows_.store(sums_.data(), R, 1, R, args_.y + at, C);
    if (slots > 0)
      std::copy_n(args_.x + at, R, ring + now % slots * C);
  }

 private:
  /// Weights of the last inputs, oldest first, the present one last; returns
  /// how many past ones there are.
  int64_t fill_taps(int64_t row, int64_t head, int64_t t, int64_t now) {
    const TileWindow<A> w = source_.in_stream(row, head, t, now);
    const A scale = A(1) / static_cast<A>(args_.shape.window());
    const int64_t past = std::min(now - w.left, args_.state.slots);
    std::fill_n(taps_.data(), past + 1, scale);
    if (w.left < w.begin)
      taps_.data()[0] = w.left_weight * scale;
    if (w.left_weight != w.left_weight)
      taps_.data()[past] = w.left_weight;
    return past;
  }

  const TalkStep<S, O>& args_;
  Windows<O> source_;
  const RowOps<S, A>& rows_;
  Scratch<A> sums_;
  Scratch<A> taps_;
};

}  // namespace

template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(kTalkRows * (shape.head_channels() * 4 + 16)),
      [&](int64_t begin, int64_t end) {
        ForwardTile<S, O> work(args, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          work.run(at.batch, at.tile, at.head);
        }
      });
}

template <class S, class O>
void talk_step(const TalkStep<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(
          shape.steps * (shape.head_channels() * args.state.slots / 2 + 16)),
      [&](int64_t begin, int64_t end) {
        StreamStepper<S, O> stepper(args, run.isa);
        for (int64_t item = begin; item < end; ++item)
          for (int64_t t = 0; t < shape.steps; ++t)
            stepper.run(item / shape.heads, item % shape.heads, t);
      });
}

#define SEQCONV_INSTANTIATE(S, O)                                         \
  template void talk_forward(const TalkForward<S, O>&, const Execution&); \
  template void talk_step(const TalkStep<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
