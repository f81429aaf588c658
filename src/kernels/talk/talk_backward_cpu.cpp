#include <cmath>

#include "kernels/talk/talk_windows.h"

/// Each tile owns some rows of grad_x and adds up all windows of the
/// neighbourhood that reach into them, so that there are no atomics and no
/// shared writes. The gradients of the offsets of its own windows are made in
/// the same pass.
namespace seqconv::internal::kernels {
namespace {

/// The edges of the windows of a head, listed by row.
template <class A>
class EdgeLists {
 public:
  /// Those at rows first .. first+rows-1; what lies outside moves to the ends.
  /// Returns whether no edge is NaN.
  bool make(const TalkWindow<A>* windows, int64_t count, int64_t first, int64_t rows) {
    edges_.reserve(2 * count);
    first_.reserve(rows);
    std::fill_n(first_.data(), rows, -1);
    TalkEdge<A>* const edges = edges_.data();
    int32_t* const of_row = first_.data();
    const auto put = [&](int64_t edge, int64_t row, A part) {
      const int64_t of = std::min(std::max<int64_t>(row - first, 0), rows - 1);
      edges[edge] = {of_row[of], part};
      of_row[of] = static_cast<int32_t>(edge);
    };
    int unordered = 0;
    // From the last one on, so that lists are in order.
    for (int64_t i = count; --i >= 0;) {
      const TalkWindow<A>& w = windows[i];
      put(2 * i + 1, w.last, w.right - 1);
      put(2 * i, w.first, w.left);
      unordered |= std::isunordered(w.left, w.right);
    }
    return unordered == 0;
  }

  const TalkEdge<A>* edges() { return edges_.data(); }
  const int32_t* first() { return first_.data(); }

 private:
  Scratch<TalkEdge<A>> edges_;
  Scratch<int32_t> first_;
};

/// The gradient of each input as a sum over the windows that hold it, for
/// gradients that are not finite. Input 0 is row `first`.
template <class S, class A>
void spread_windows_singly(
    const TalkGradTile<S, A>& tile, const TalkWindow<A>* windows, int64_t first) {
  for (int64_t c = 0; c < tile.channels; ++c)
    for (int64_t s = 0; s < tile.span; ++s) {
      A sum = 0;
      for (int64_t i = 0; i < tile.rows; ++i) {
        const A share = talk_share(windows[i], first + s);
        if (share != 0)
          sum += share * widen(tile.g[i * tile.stride + c]);
      }
      tile.grad_x[s * tile.stride + c] = narrow<S>(sum * tile.scale);
    }
}

template <class S, class O, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(const TalkBackward<S, O>& args, CacheUse use, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        backward_(talk_columns_backward<S, A>(isa)),
        streaming_(use.streams) {}

  /// Gradients of a head at some rows.
  void run(const TalkRows& rows, int64_t head) {
    const TalkShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const int64_t row = rows.batch * shape.steps + rows.first;
    const int64_t real = rows.real();
    if (args_.grad_x != nullptr)
      zero_rows(args_.grad_x + row * C + head * R, C, R, real, rows.count);
    for (O* const grad : {args_.grad_offset_left, args_.grad_offset_right})
      if (grad != nullptr)
        zero_rows(grad + row * shape.heads + head, shape.heads, 1, real, rows.count);
    if (real == 0)
      return;
    const TalkReach reach = windows_.reach({rows.batch, 0, rows.valid, rows.valid});
    TalkGradTile<S, A> tile = tile_of(rows, reach);
    const int64_t from = rows.first - tile.own;
    const TalkWindow<A>* const windows =
        windows_.make({rows.batch, from, tile.rows, rows.valid}, head);
    const bool numbers =
        edges_.make(windows, tile.rows, rows.first + tile.begin, tile.end - tile.begin);
    tile.edges = edges_.edges();
    tile.first = edges_.first();
    products_.reserve(2 * tile.rows);
    products_.fill_zero(2 * tile.rows);
    tile.products = products_.data();
    const int64_t at = row * C + head * R;
    tile.channels = R;
    tile.g = args_.grad_y + at - tile.own * C;
    tile.x = args_.x + at + tile.begin * C;
    tile.grad_x = args_.grad_x == nullptr ? nullptr : args_.grad_x + at;
    const int64_t strip = std::min(kTalkChannels, R);
    tile.next = talk_next(shape, head * R + R - strip, strip, rows.count);
    const bool finite = backward_(tile) && numbers;
    if (!finite && tile.grad_x != nullptr)
      spread_windows_singly(tile, windows, rows.first);
    put_offset_gradients(tile, windows + tile.own, row * shape.heads + head);
  }

 private:
  /// Which windows and edges a tile has.
  TalkGradTile<S, A> tile_of(const TalkRows& rows, const TalkReach& reach) {
    const int64_t first = rows.first, span = rows.real();
    const int64_t from = std::max<int64_t>(0, first - reach.right + 1);
    const int64_t to = std::min(rows.valid, first + span + reach.left);
    const int64_t ring = talk_ring(std::min(to - from, reach.rows()));
    ring_.reserve(ring * kTalkChannels);
    return {
        .rows = to - from,
        .own = first - from,
        // A row more where other windows' edges have to be clipped.
        .begin = -std::min(first, std::max<int64_t>(reach.left, from < first ? 1 : 0)),
        .end = std::min(rows.valid - first, span + std::max<int64_t>(reach.right - 1, 1)),
        .scale = talk_scale<A>(args_.shape),
        .span = span,
        .stride = args_.shape.channels,
        .ahead = reach.left + 1,
        .ring = ring,
        .ring_of_g = ring_.data(),
        .streaming = streaming_};
  }

  /// max_left * <g, x at the edge> / window where the edge is fractional, else
  /// 0; on the right likewise. `at`: of the first own window's offset.
  void put_offset_gradients(
      const TalkGradTile<S, A>& tile, const TalkWindow<A>* own, int64_t at) const {
    const TalkShape& shape = args_.shape;
    const A* const products = tile.products + 2 * tile.own;
    const auto put = [&](O* grad, int64_t max, int side, A TalkWindow<A>::*part) {
      if (grad == nullptr)
        return;
      const A scale = static_cast<A>(max) * tile.scale;
      for (int64_t t = 0; t < tile.span; ++t)
        grad[at + t * shape.heads] =
            narrow<O>(own[t].*part != 1 ? products[2 * t + side] * scale : A(0));
    };
    put(args_.grad_offset_left, shape.max_left, 0, &TalkWindow<A>::left);
    put(args_.grad_offset_right, shape.max_right, 1, &TalkWindow<A>::right);
  }

  const TalkBackward<S, O>& args_;
  TalkWindows<O> windows_;
  EdgeLists<A> edges_;
  const TalkColumnsBackward<S, A> backward_;
  const bool streaming_;
  Scratch<A> ring_;
  Scratch<A> products_;
};

/// Heads of few channels, some of them together.
template <class S, class O, class A = AccumulatorOf<S>>
class BackwardHeadsTile {
 public:
  BackwardHeadsTile(const TalkBackward<S, O>& args, CacheUse use, Isa isa)
      : args_(args),
        windows_(args.shape, args.offset_left, args.offset_right, isa),
        backward_(talk_heads_backward<S, O>(isa)),
        use_(use),
        singly_(args, {}, isa) {}

  void run(const TalkRows& rows, int64_t group) {
    const TalkShape& shape = args_.shape;
    const TalkHeadGroup heads = talk_head_group(shape, group);
    const int64_t row = rows.batch * shape.steps + rows.first, real = rows.real();
    if (args_.grad_x != nullptr)
      zero_rows(
          args_.grad_x + row * shape.channels + heads.channel,
          shape.channels,
          heads.channels,
          real,
          rows.count);
    for (O* const grad : {args_.grad_offset_left, args_.grad_offset_right})
      if (grad != nullptr)
        zero_rows(
            grad + row * shape.heads + heads.first, shape.heads, heads.count, real, rows.count);
    if (real > 0 && !backward_(tile_of(rows, heads)))
      for (int64_t h = 0; h < heads.count; ++h)
        singly_.run(rows, heads.first + h);
  }

 private:
  TalkHeadsGradTile<S, O> tile_of(const TalkRows& rows, const TalkHeadGroup& heads) {
    const TalkShape& shape = args_.shape;
    const TalkReach reach = windows_.reach({rows.batch, 0, rows.valid, rows.valid});
    const int64_t first = rows.first, span = rows.real(), C = shape.channels, H = shape.heads;
    const bool whole = args_.grad_x != nullptr;  // else this tile's windows are enough
    const int64_t from = whole ? std::max<int64_t>(0, first - reach.right + 1) : first;
    const int64_t to = whole ? std::min(rows.valid, first + span + reach.left) : first + span;
    const int64_t ring = talk_ring(std::min(reach.rows(), rows.valid + 2));
    changes_.reserve(2 * ring * kTalkTogether);
    inputs_.reserve(ring * kTalkTogether);
    const int64_t at = rows.batch * shape.steps, channel = at * C + heads.channel;
    const auto offset_gradients = [&](O* grad) {
      return grad == nullptr ? nullptr : grad + at * H + heads.first;
    };
    const A scale = talk_scale<A>(shape);
    return {
        .heads =
            {.offsets = windows_.offsets({rows.batch, from, to - from, rows.valid}, heads.first),
             .count = heads.count,
             .head_channels = shape.head_channels(),
             .reach_left = reach.left,
             .reach_right = reach.right,
             .prefetches = use_.prefetches},
        .first = first,
        .span = span,
        .channels = heads.channels,
        .scale = scale,
        .g = args_.grad_y + channel,
        .x = args_.x + channel,
        .grad_x = whole ? args_.grad_x + channel : nullptr,
        .stride = C,
        .grad_left = offset_gradients(args_.grad_offset_left),
        .grad_right = offset_gradients(args_.grad_offset_right),
        .scale_left = static_cast<A>(shape.max_left) * scale,
        .scale_right = static_cast<A>(shape.max_right) * scale,
        .ring = ring,
        .changes = changes_.data(),
        .inputs = inputs_.data(),
        .streaming = use_.streams};
  }

  const TalkBackward<S, O>& args_;
  TalkWindows<O> windows_;
  const TalkHeadsBackward<S, O> backward_;
  const CacheUse use_;
  BackwardTile<S, O> singly_;
  Scratch<A> changes_;
  Scratch<A> inputs_;
};

}  // namespace

template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const int64_t R = shape.head_channels();
  if (R < talk_heads_kernels<S, O>(run.isa).lanes)
    return for_talk_tiles<BackwardHeadsTile<S, O>>(
        args,
        talk_heads_cache_use(run, shape, args.grad_x, 2 * shape.channels),
        talk_head_groups(shape),
        kTalkRows * kTalkTogether * 32,
        run);
  for_talk_tiles<BackwardTile<S, O>>(
      args,
      cache_use(run, shape, args.grad_x, 2 * shape.channels),
      shape.heads,
      kTalkRows * (R * 10 + 32),
      run);
}

#define SEQCONV_INSTANTIATE(S, O) \
  template void talk_backward(const TalkBackward<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::internal::kernels
