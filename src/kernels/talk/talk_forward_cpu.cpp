#include "kernels/talk/talk_windows.h"

/// Prefix sums over the rows that a tile's windows reach, started anew for
/// every tile, so that rounding depends on the window and not on T.
namespace seqconv::internal::kernels {
namespace {

/// One window after the other, for inputs that are not finite.
template <class S, class A>
void sum_windows_singly(const TalkTile<S, A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < tile.channels; ++c) {
      const TalkWindow<A>& w = tile.windows[t];
      A sum = 0;
      for (int64_t row = std::min(w.first, w.last); row <= std::max(w.first, w.last); ++row)
        if (const A share = talk_share(w, row); share != 0)
          sum += share * widen(tile.x[(row - tile.origin) * tile.stride + c]);
      tile.y[t * tile.stride + c] = narrow<S>(sum * tile.scale);
    }
}

/// Strips of a head: they are worked on one by one.
int64_t talk_strips(const TalkShape& shape) {
  return ceil_div(shape.head_channels(), kTalkChannels);
}

template <class S, class O, class A = AccumulatorOf<S>>
class ForwardTile {
 public:
  ForwardTile(const TalkForward<S, O>& args, CacheUse use, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_kernels<S, A>(isa)),
        streaming_(use.streams) {}

  /// A strip of a head's channels, counted through all heads.
  void run(TalkRows rows, int64_t strip) {
    const TalkShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const int64_t strips = talk_strips(shape), head = strip / strips;
    const int64_t from = strip % strips * kTalkChannels;
    const int64_t channel = head * R + from;
    const int64_t channels = std::min(kTalkChannels, R - from);
    const int64_t at = rows.batch * shape.steps * C + channel;
    const int64_t next = talk_next(shape, channel, channels, rows.count);
    zero_rows(args_.y + at, C, channels, rows.first + rows.real(), rows.first + rows.count);
    rows.count = rows.real();
    if (rows.count == 0)
      return;
    const TalkReach reach = windows_.reach(rows);
    const int64_t origin = std::max<int64_t>(0, rows.first - reach.left);
    const int64_t end = std::min(rows.valid, rows.first + rows.count + reach.right);
    const int64_t ring = talk_ring(std::min(end - origin, reach.rows()) + 1);
    sums_.reserve((ring + 1) * kTalkChannels);
    const TalkTile<S, A> tile = {
        .windows = windows_.make(rows, head),
        .rows = rows.count,
        .channels = channels,
        .scale = talk_scale<A>(shape),
        .origin = origin,
        .inputs = end - origin,
        .ahead = rows.first - origin + reach.right,
        .x = args_.x + at + origin * C,
        .y = args_.y + at + rows.first * C,
        .stride = C,
        .sums = sums_.data() + kTalkChannels,
        .ring = ring,
        .streaming = streaming_,
        .next = next};
    if (!ops_.forward(tile))
      sum_windows_singly(tile);
  }

 private:
  const TalkForward<S, O>& args_;
  TalkWindows<O> windows_;
  const TalkKernels<S, A>& ops_;
  const bool streaming_;
  Scratch<A> sums_;
};

/// Heads of few channels, as many together as kTalkChannels hold.
template <class S, class O, class A = AccumulatorOf<S>>
class ForwardHeadsTile {
 public:
  ForwardHeadsTile(const TalkForward<S, O>& args, CacheUse use, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        ops_(talk_heads_kernels<S, O>(isa)),
        use_(use),
        singly_(args, {}, isa) {}

  void run(TalkRows rows, int64_t group) {
    const TalkShape& shape = args_.shape;
    const TalkHeadGroup heads = talk_head_group(shape, group);
    const int64_t C = shape.channels, position = rows.batch * shape.steps;
    const int64_t at = position * C + heads.channel;
    const TalkRows all = rows;
    zero_rows(args_.y + at, C, heads.channels, rows.first + rows.real(), rows.first + rows.count);
    rows.count = rows.real();
    if (rows.count == 0)
      return;
    const TalkReach reach = windows_.reach(rows);
    const int64_t origin = std::max<int64_t>(0, rows.first - reach.left);
    const int64_t end = std::min(rows.valid, rows.first + rows.count + reach.right);
    const int64_t ring = talk_ring(std::min(end - origin, reach.rows()));
    pairs_.reserve(2 * ring * kTalkTogether);
    const TalkTile<S, A> tile = {
        .rows = rows.count,
        .channels = heads.channels,
        .scale = talk_scale<A>(shape),
        .origin = origin,
        .inputs = end - origin,
        .ahead = rows.first - origin + reach.right,
        .x = args_.x + at + origin * C,
        .y = args_.y + at + rows.first * C,
        .stride = C,
        .sums = pairs_.data(),
        .ring = ring,
        .streaming = use_.streams};
    const TalkHeads<O> own = {
        .offsets = windows_.offsets(rows, heads.first),
        .count = heads.count,
        .head_channels = shape.head_channels(),
        .reach_left = reach.left,
        .reach_right = reach.right,
        .prefetches = use_.prefetches};
    if (!ops_.forward({tile, own}))
      for (int64_t h = 0; h < heads.count; ++h)
        singly_.run(all, heads.first + h);
  }

 private:
  const TalkForward<S, O>& args_;
  TalkWindows<O> windows_;
  const TalkHeadsKernels<S, O>& ops_;
  const CacheUse use_;
  ForwardTile<S, O> singly_;
  Scratch<A> pairs_;
};

}  // namespace

template <class S, class O>
void talk_forward(const TalkForward<S, O>& args, const Execution& run) {
  constexpr int64_t kOperations = kTalkRows * (kTalkChannels * 4 + 16);
  const TalkShape& shape = args.shape;
  if (shape.head_channels() < talk_heads_kernels<S, O>(run.isa).lanes)
    return for_talk_tiles<ForwardHeadsTile<S, O>>(
        args,
        talk_heads_cache_use(run, shape, args.y, shape.channels),
        talk_head_groups(shape),
        4 * kOperations,
        run);
  for_talk_tiles<ForwardTile<S, O>>(
      args,
      cache_use(run, shape, args.y, shape.channels),
      shape.heads * talk_strips(shape),
      kOperations,
      run);
}

#define SEQCONV_INSTANTIATE(S, O) \
  template void talk_forward(const TalkForward<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
#ifndef SEQCONV_FLOAT_ONLY
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)
#endif

}  // namespace seqconv::internal::kernels
