#include <cmath>

#include "kernels/talk_tiles.h"

/// Prefix sums over the rows that a tile's windows reach, started anew for
/// every tile, so that rounding depends on the window and not on T.
namespace seqconv::kernels {
namespace {

template <class S, class O, class A = AccumulatorOf<S>>
class ForwardTile {
 public:
  ForwardTile(const TalkForward<S, O>& args, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_ops<S, A>(isa)) {}

  void run(const TalkStrip& strip, int64_t tile) {
    const TalkShape& shape = args_.shape;
    const int64_t T = shape.steps, C = shape.channels;
    const int64_t first = tile * kTalkRows;
    const int64_t rows = std::min(kTalkRows, T - first);
    const int64_t valid = valid_rows(args_.lengths, strip.batch, T);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    const int64_t at = strip.batch * T * C + strip.channel;
    zero_rows(args_.y + at, C, strip.channels, first + real, first + rows);
    if (real == 0)
      return;
    // Offsets beyond 1 may reach further than expected: then once more.
    int64_t origin = std::max<int64_t>(0, first - shape.max_left - 1);
    TalkRange range = windows_.make(strip, first, real, valid, origin);
    if (range.begin < 0) {
      origin += range.begin;
      range = windows_.make(strip, first, real, valid, origin);
    }
    sums_.reserve((range.end + 1) * kTalkChannels);
    ops_.forward(
        {.windows = windows_.get(),
         .lane_windows = strip.lanes,
         .rows = real,
         .channels = strip.channels,
         .scale = A(1) / static_cast<A>(shape.window()),
         .x = args_.x + at + origin * C,
         .x_stride = C,
         .begin = range.begin,
         .end = range.end,
         .sums = sums_.data(),
         .y = args_.y + at + first * C,
         .y_stride = C});
  }

 private:
  const TalkForward<S, O>& args_;
  WindowMaker<O> windows_;
  const TalkOps<S, A>& ops_;
  Scratch<A> sums_;
};

/// Elements of scratch memory on the stack.
constexpr int64_t kStepInline = 1024;

/// One thread of the step form.
template <class S, class O, class A = AccumulatorOf<S>>
class StreamStepper {
 public:
  StreamStepper(const TalkStep<S, O>& args, Isa isa)
      : args_(args),
        ops_(row_ops<S, A>(isa)),
        sums_(args.shape.head_channels()),
        taps_(args.state.slots + 1) {}

  void run(int64_t row, int64_t head, int64_t t) {
    const TalkShape& shape = args_.shape;
    const int64_t R = shape.head_channels(), C = shape.channels;
    const int64_t at = (row * shape.steps + t) * C + head * R;
    const int64_t slots = args_.state.slots, now = args_.state.position + t;
    S* const ring = args_.state.data + row * slots * C + head * R;
    const int64_t past = fill_taps(row, head, t, now);
    A* const taps = taps_.data();
    sums_.fill_zero(R);
    if (past > 0) {
      const int64_t oldest = (now - past) % slots;
      const int64_t unbroken = std::min(past, slots - oldest);
      ops_.weighted_sum(ring + oldest * C, C, taps, unbroken, sums_.data(), R);
      ops_.weighted_sum(
          ring,
          C,
          taps + unbroken,
          past - unbroken,
          sums_.data(),
          R);
    }
    ops_.weighted_sum(args_.x + at, C, taps + past, 1, sums_.data(), R);
    ops_.narrow(sums_.data(), R, args_.y + at);
    if (slots > 0)
      std::copy_n(args_.x + at, R, ring + now % slots * C);
  }

 private:
  /// Weights of the last inputs, oldest first, the present one last; returns
  /// how many past ones there are.
  int64_t fill_taps(int64_t row, int64_t head, int64_t t, int64_t now) {
    const TalkShape& shape = args_.shape;
    const A scale = A(1) / static_cast<A>(shape.window());
    const O offset =
        args_.offset_left[(row * shape.steps + t) * shape.heads + head];
    const A distance = widen(offset) * static_cast<A>(shape.max_left);
    A* const taps = taps_.data();
    if (distance != distance) {
      taps[0] = distance;
      return 0;
    }
    const A reach = std::clamp<A>(
        distance,
        0,
        static_cast<A>(std::min(now, args_.state.slots)));
    const auto whole = static_cast<int64_t>(reach);
    const A rest = reach - static_cast<A>(whole);
    const int64_t past = whole + (rest > 0 ? 1 : 0);
    std::fill_n(taps, past + 1, scale);
    if (rest > 0)
      taps[0] = rest * scale;
    return past;
  }

  static A widen(O value) {
    if constexpr (std::is_same_v<O, BFloat16>)
      return to_float(value);
    else
      return static_cast<A>(value);
  }

  const TalkStep<S, O>& args_;
  const RowOps<S, A>& ops_;
  Scratch<A, kStepInline> sums_;
  Scratch<A, kStepInline> taps_;
};

}  // namespace

template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const TalkStrips strips(shape);
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * strips.count(),
      grain_for(kTalkRows * (kTalkChannels * 4 + 16)),
      [&](int64_t begin, int64_t end) {
        ForwardTile<S, O> work(args, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, strips.count());
          work.run(strips.get(at.batch, at.group), at.tile);
        }
      });
}

template <class S, class O>
void talk_step(const TalkStep<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const auto body = [&](int64_t begin, int64_t end) {
    StreamStepper<S, O> stepper(args, run.isa);
    for (int64_t item = begin; item < end; ++item)
      for (int64_t t = 0; t < shape.steps; ++t)
        stepper.run(item / shape.heads, item % shape.heads, t);
  };
  // By reference: a std::function of its own would take memory.
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(
          shape.steps * (shape.head_channels() * args.state.slots / 2 + 16)),
      std::cref(body));
}

#define SEQCONV_INSTANTIATE(S, O)                                         \
  template void talk_forward(const TalkForward<S, O>&, const Execution&); \
  template void talk_step(const TalkStep<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
