#if defined(SEQCONV_KERNELS_TALK_BORDERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_BORDERS_INL_H
#undef SEQCONV_KERNELS_TALK_BORDERS_INL_H
#else
#define SEQCONV_KERNELS_TALK_BORDERS_INL_H
#endif

#include "kernels/talk/talk_distance-inl.h"

/// The edges of TaLK's windows, and the products of gradients with the inputs
/// where they stand.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class A>
bool talk_edges(
    const TalkDistances<A>& in,
    const TalkRange& range,
    const TalkEdges<A>& out) {
  const Tag<A> d;
  const IntTag<A> di;
  const EntryMaker<A> maker(in);
  const auto first = all_whole<A>(range.first);
  const auto last = all_whole<A>(range.count - 1);
  const auto row = [&](auto position) HWY_ATTR {
    return clamp<A>(hn::Sub(position, first), last);
  };
  auto nan = hn::Zero(d);
  for_entries(
      in,
      [&](auto entries, auto to_left, auto to_right, int64_t h, int64_t i)
          HWY_ATTR {
            const int64_t at = 2 * (h * in.pitch + i);
            const WindowEntries<A> e = maker.make(entries, to_left, to_right);
            hn::StoreInterleaved2(
                row(hn::Sub(e.t, e.left.edge)),
                row(hn::Add(e.t, e.right.edge)),
                di,
                out.rows + at);
            const auto one = hn::Set(d, A(1)), none = hn::Zero(d);
            const auto left = e.left.rest, right = e.right.rest;
            hn::StoreInterleaved2(
                hn::IfThenElse(hn::Eq(left, none), one, left),
                hn::IfThenElse(hn::Eq(right, none), none, hn::Sub(right, one)),
                d,
                out.parts + at);
            // Of entries that there are.
            const auto rests = hn::IfThenElseZero(
                hn::FirstN(d, static_cast<size_t>(in.count - i)),
                hn::Add(left, right));
            nan = hn::Add(nan, rests);
          });
  return hn::AllTrue(d, hn::Eq(nan, nan));
}

/// Products at edges whose lanes are summed up many at a time.
template <class A>
struct EdgeProducts {
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kMax = 64;

  int32_t edges[kMax];
  HWY_ALIGN A lanes[kMax * L];

  HWY_INLINE void put(int64_t i, int64_t edge, Vec<A> product) {
    edges[i] = static_cast<int32_t>(edge);
    hn::Store(product, Tag<A>(), lanes + i * L);
  }
  /// Adds products 0 .. count-1 to those of their edges. Apart, for the loops
  /// around it need all registers.
  HWY_NOINLINE void add_to(A* to, int64_t count) {
    for (int64_t i = count; i % L != 0; ++i)
      hn::Store(hn::Zero(Tag<A>()), Tag<A>(), lanes + i * L);
    for (int64_t i = 0; i < count; i += L) {
      Vec<A> v[L];
      for (int64_t n = 0; n < L; ++n)
        v[n] = hn::Load(Tag<A>(), lanes + (i + n) * L);
      HWY_ALIGN A sums[L];
      hn::Store(lane_sums<A>(v), Tag<A>(), sums);
      const int64_t some = HWY_MIN(L, count - i);
      for (int64_t n = 0; n < some; ++n)
        to[edges[i + n]] += sums[n];
    }
  }
};

/// Adds the products of the tile's own windows to the gradients of their
/// offsets; those of whole edges are none, whatever the input there is.
template <class S, class A>
HWY_INLINE void add_products(const TalkGradTile<S, A>& tile) {
  const Tag<A> d;
  for (int64_t i = 0; i < tile.span; i += kLanes<A>) {
    const int64_t edge = 2 * (tile.own + i), count = tile.span - i;
    Vec<A> parts[2], products[2];
    hn::LoadInterleaved2(d, tile.edges.parts + edge, parts[0], parts[1]);
    hn::LoadInterleaved2(d, tile.products + edge, products[0], products[1]);
    const auto add = [&](int side, A* to) HWY_ATTR {
      const auto whole = hn::Set(d, TalkEdges<A>::whole(side));
      const auto product =
          hn::IfThenElseZero(hn::Ne(parts[side], whole), products[side]);
      store_some<A>(hn::Add(load_some<A>(to, count), product), to, count);
    };
    add(0, tile.left + i);
    add(1, tile.right + i);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
