#include "kernels/talk/talk_windows.h"

/// Prefix sums over the rows that a tile's windows reach, started anew for
/// every tile, so that rounding depends on the window and not on T.
namespace seqconv::kernels {
namespace {

/// One window after the other, for inputs that are not finite.
template <class S, class A>
void sum_windows_singly(const TalkTile<S, A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < tile.channels; ++c) {
      const TalkWindow<A>& w = tile.windows[t];
      const auto x = [&](int64_t row) {
        return widen(tile.x[(row - tile.origin) * tile.stride + c]);
      };
      const int64_t high = w.behind - 1;
      A sum = 0;
      for (int64_t row = w.low; row < high; ++row)
        sum += x(row);
      for (int64_t row = high; row < w.low; ++row)
        sum -= x(row);
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
  ForwardTile(const TalkForward<S, O>& args, bool streaming, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_kernels<S, A>(isa)),
        streaming_(streaming) {}

  /// Channels [channel, channel + channels), which are of one head.
  void run(TalkRows rows, int64_t channel, int64_t channels) {
    const TalkShape& shape = args_.shape;
    const int64_t C = shape.channels;
    const int64_t at = rows.batch * shape.steps * C + channel;
    const int64_t next =
        talk_next(shape, channel + channels, channels, rows.count);
    zero_rows(
        args_.y + at,
        C,
        channels,
        rows.first + rows.real(),
        rows.first + rows.count);
    rows.count = rows.real();
    if (rows.count == 0)
      return;
    const TalkReach reach = windows_.reach(rows);
    const int64_t origin = std::max<int64_t>(0, rows.first - reach.left);
    const int64_t end =
        std::min(rows.valid, rows.first + rows.count + reach.right);
    const int64_t ring = talk_ring(std::min(end - origin, reach.rows()) + 1);
    const TalkTile<S, A> tile = {
        .windows = windows_.make(rows, channel / shape.head_channels()),
        .rows = rows.count,
        .channels = channels,
        .scale = talk_scale<A>(shape),
        .origin = origin,
        .inputs = end - origin,
        .ahead = rows.first - origin + reach.right,
        .x = args_.x + at + origin * C,
        .y = args_.y + at + rows.first * C,
        .stride = C,
        .sums = sums_of(ring),
        .ring = ring,
        .streaming = streaming_,
        .next = next};
    if (ops_.forward(tile))
      return;
    sum_windows_singly(tile);
    // Later tiles multiply what is left there by 0.
    sums_.fill_zero((ring + 1) * kTalkChannels);
  }

 private:
  /// A ring of sums that are all finite.
  A* sums_of(int64_t ring) {
    const int64_t elements = (ring + 1) * kTalkChannels;
    if (sums_.reserve(elements))
      sums_.fill_zero(elements);
    return sums_.data() + kTalkChannels;
  }

  const TalkForward<S, O>& args_;
  TalkWindows<O> windows_;
  const TalkKernels<S, A>& ops_;
  const bool streaming_;
  Scratch<A> sums_;
};

}  // namespace

template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const bool streaming = talk_streams(run, shape, args.y, 1);
  const int64_t R = shape.head_channels();
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  const int64_t strips = ceil_div(R, kTalkChannels);
  run.parallel_for(
      shape.batch * tiles * shape.heads * strips,
      grain_for(kTalkRows * (kTalkChannels * 4 + 16)),
      [&](int64_t begin, int64_t end) {
        ForwardTile<S, O> work(args, streaming, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads * strips);
          const int64_t head = at.group / strips;
          const int64_t first = at.group % strips * kTalkChannels;
          work.run(
              talk_rows(shape, args.lengths, at.batch, at.tile),
              head * R + first,
              std::min(kTalkChannels, R - first));
        }
      });
}

template void talk_forward(const TalkForward<float, float>&, const Execution&);
template void talk_forward(
    const TalkForward<double, double>&,
    const Execution&);
template void talk_forward(
    const TalkForward<BFloat16, BFloat16>&,
    const Execution&);
template void talk_forward(
    const TalkForward<BFloat16, float>&,
    const Execution&);

}  // namespace seqconv::kernels
