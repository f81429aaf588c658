#include <cmath>

#include "kernels/conv/conv_kernels.h"
#include "kernels/talk/talk_window_maker.h"

/// Prefix sums over the rows that a tile's windows reach, started anew for
/// every tile, so that rounding depends on the window and not on T.
namespace seqconv::kernels {
namespace {

/// One window after the other, for inputs that are not finite. Places are
/// positions.
template <class S, class A>
void sum_windows_singly(const TalkTile<S, A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < tile.channels; ++c) {
      const TalkWindow<A>& w =
          tile.windows[talk_entry(tile.lanes, tile.second, t, c)];
      const auto x = [&](int64_t r) {
        return widen(tile.x[r * tile.stride + c]);
      };
      const int64_t high = w.behind - 1;
      A sum = 0;
      for (int64_t r = w.low; r < high; ++r)
        sum += x(r);
      for (int64_t r = high; r < w.low; ++r)
        sum -= x(r);
      if (w.left != 0)
        sum += w.left * (w.left > 0 ? x(w.low - 1) : A(1));
      if (w.right != 0)
        sum += w.right * (w.right > 0 ? x(high) : A(1));
      tile.y[t * tile.stride + c] = narrow<S>(sum * tile.scale);
    }
}

template <class S, class O, class A = AccumulatorOf<S>>
class ForwardTile {
 public:
  ForwardTile(const TalkForward<S, O>& args, const CacheUse& plan, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_kernels<S, A>(isa)),
        plan_(plan) {}

  void run(const TalkStrip& strip, int64_t index) {
    const TalkShape& shape = args_.shape;
    const int64_t T = shape.steps, C = shape.channels;
    TalkRows rows = talk_rows_of(shape, args_.lengths, strip.batch, index);
    const int64_t first = rows.first, real = rows.real();
    const int64_t at = strip.batch * T * C + strip.channel;
    const int64_t next = next_strip(shape, strip, rows.count);
    zero_rows(
        args_.y + at,
        C,
        strip.channels,
        first + real,
        first + rows.count);
    if (real == 0)
      return;
    rows.count = real;
    const TalkReach reach = windows_.reach({strip.batch, rows});
    const int64_t origin = std::max<int64_t>(0, first - reach.left);
    const int64_t end =
        std::min(rows.valid, first + real + reach.right) - origin;
    TalkTile<S, A> tile = {
        .lanes = strip.lanes,
        .rows = real,
        .channels = strip.channels,
        .scale = talk_scale<A>(shape),
        .x = args_.x + at + origin * C,
        .stride = C,
        .ahead = first - origin + reach.right,
        .end = end,
        .ring = talk_ring(
            strip.narrow() ? end + 2 : std::min(end + 1, reach.rows() + 1)),
        .y = args_.y + at + first * C,
        .streaming = plan_.streams,
        .next = next,
        .from_memory = plan_.prefetches};
    TalkPlaces places = {
        .origin = origin,
        .ring = tile.ring,
        .pitch = talk_pitch(strip.lanes)};
    const int64_t elements = (places.ring + 1) * places.pitch;
    if (sums_.reserve(elements) || !finite_)
      sums_.fill_zero(elements);
    tile.sums = sums_.data() + places.pitch;
    tile.windows = windows_.make(strip, rows, places);
    tile.second = windows_.second(rows);
    finite_ = ops_.forward(tile);
    if (finite_)
      return;
    places.ring = talk_ring(end + 2);
    places.pitch = 1;
    tile.windows = windows_.make(strip, rows, places);
    sum_windows_singly(tile);
  }

 private:
  const TalkForward<S, O>& args_;
  WindowMaker<O> windows_;
  const TalkKernels<S, A>& ops_;
  const CacheUse plan_;
  Scratch<A> sums_;
  bool finite_ = true;  // what sums_ holds
};

/// Elements of scratch memory on the stack.
constexpr int64_t kStepInline = 1024;

/// One thread of the step form.
template <class S, class O, class A = AccumulatorOf<S>>
class StreamStepper {
 public:
  StreamStepper(const TalkStep<S, O>& args, Isa isa)
      : args_(args),
        ops_(conv_kernels<S, A>(isa)),
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
    const A scale = talk_scale<A>(shape);
    const O offset =
        args_.offset_left[(row * shape.steps + t) * shape.heads + head];
    const A distance =
        static_cast<A>(widen(offset)) * static_cast<A>(shape.max_left);
    A* const taps = taps_.data();
    if (distance != distance) {
      taps[0] = distance;
      return 0;
    }
    // As a number of A, the limit may be rounded.
    const int64_t limit = std::min(now, args_.state.slots);
    const int64_t tokens = distance < static_cast<A>(limit)
        ? static_cast<int64_t>(std::max<A>(0, distance))
        : limit;
    const int64_t whole = std::min(tokens, limit);
    const A rest =
        whole < limit ? std::max<A>(0, distance) - static_cast<A>(whole) : A(0);
    const int64_t past = whole + (rest > 0 ? 1 : 0);
    std::fill_n(taps, past + 1, scale);
    if (rest > 0)
      taps[0] = rest * scale;
    return past;
  }

  const TalkStep<S, O>& args_;
  const ConvKernels<S, A>& ops_;
  Scratch<A, kStepInline> sums_;
  Scratch<A, kStepInline> taps_;
};

}  // namespace

template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const CacheUse plan = cache_use(run, shape, args.y, shape.channels);
  // Gathering sums lane by lane takes as long as a row of a vector for each of
  // the lanes: only heads of one channel do. What comes from memory is as fast
  // in strips of one window.
  constexpr int64_t kOwnStrip = 2;
  const TalkStrips strips(
      shape,
      kOwnStrip,
      !plan.streams && talk_kernels<S, AccumulatorOf<S>>(run.isa).pairs &&
          TalkStrips::can_pair(shape, sizeof(S)));
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * strips.count(),
      grain_for(kTalkRows * (kTalkChannels * 4 + 16)),
      [&](int64_t begin, int64_t end) {
        ForwardTile<S, O> work(args, plan, run.isa);
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
