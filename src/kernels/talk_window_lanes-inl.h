#if defined(SEQCONV_KERNELS_TALK_WINDOW_LANES_INL_H) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOW_LANES_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOW_LANES_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOW_LANES_INL_H
#endif

#include "kernels/talk_tile_ops.h"
#include "kernels/vectors-inl.h"

/// Several of TaLK's windows in vectors, and in memory, where all of a window
/// lies together.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class A>
using IntTag = hn::Rebind<int32_t, Tag<A>>;
template <class A>
using IntVec = hn::Vec<IntTag<A>>;

/// The windows of kLanes entries, as the fields of TalkWindow.
template <class A>
struct WindowLanes {
  IntVec<A> low, low_edge, high, high_edge;
  Vec<A> left, right;
  IntVec<A> left_input, right_input;
};

/// Which entry a lane of WindowLanes holds when it is stored: any order will
/// do, and this one takes the fewest moves.
template <class A>
class LaneOrder {
 public:
  static constexpr bool kMixed = sizeof(A) == 4 && kLanes<A> > 1;

  LaneOrder() {
    for (int i = 0; i < L; ++i)
      entries_[i] = kMixed ? i % 4 / 2 * (L / 2) + i / 4 * 2 + i % 2 : i;
  }

  HWY_INLINE IntVec<A> entries() const {
    return hn::LoadU(IntTag<A>(), entries_);
  }
  /// Values of entries as lanes.
  HWY_INLINE Vec<A> lanes(Vec<A> v) const {
    if constexpr (kMixed)
      return hn::TableLookupLanes(v, hn::IndicesFromVec(Tag<A>(), entries()));
    else
      return v;
  }

 private:
  static constexpr int L = kLanes<A>;
  HWY_ALIGN int32_t entries_[L];
};

#if HWY_TARGET != HWY_SCALAR
/// Windows as four pairs of numbers of 32 bits.
using WindowPairs = hn::Repartition<uint64_t, Tag<float>>;
static_assert(sizeof(TalkWindow<float>) == 4 * sizeof(uint64_t));

HWY_INLINE void store_windows(
    const WindowLanes<float>& w,
    TalkWindow<float>* out) {
  constexpr IntTag<float> d;
  constexpr WindowPairs pairs;
  const auto left = hn::BitCast(d, w.left), right = hn::BitCast(d, w.right);
  const auto lower = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  };
  const auto upper = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  };
  const auto store = [&](const auto& half, uint64_t* to) HWY_ATTR {
    hn::StoreInterleaved4(
        half(w.low, w.low_edge),
        half(w.high, w.high_edge),
        half(left, right),
        half(w.left_input, w.right_input),
        pairs,
        to);
  };
  uint64_t* const to = reinterpret_cast<uint64_t*>(out);
  store(lower, to);
  store(upper, to + 2 * kLanes<float>);
}

/// In their order.
HWY_INLINE WindowLanes<float> load_windows(const TalkWindow<float>* from) {
  constexpr IntTag<float> d;
  constexpr WindowPairs pairs;
  const uint64_t* const p = reinterpret_cast<const uint64_t*>(from);
  hn::Vec<WindowPairs> a[4], b[4];
  hn::LoadInterleaved4(pairs, p, a[0], a[1], a[2], a[3]);
  hn::LoadInterleaved4(pairs, p + 2 * kLanes<float>, b[0], b[1], b[2], b[3]);
  const auto even = [&](int i) HWY_ATTR {
    return hn::ConcatEven(d, hn::BitCast(d, b[i]), hn::BitCast(d, a[i]));
  };
  const auto odd = [&](int i) HWY_ATTR {
    return hn::ConcatOdd(d, hn::BitCast(d, b[i]), hn::BitCast(d, a[i]));
  };
  return {
      even(0),
      odd(0),
      even(1),
      odd(1),
      hn::BitCast(Tag<float>(), even(2)),
      hn::BitCast(Tag<float>(), odd(2)),
      even(3),
      odd(3)};
}
#endif

template <class A>
void store_windows(const WindowLanes<A>& w, TalkWindow<A>* out) {
  constexpr int L = kLanes<A>;
  int32_t whole[6][L];
  A part[2][L];
  const IntTag<A> d;
  const IntVec<A>* const fields[6] = {
      &w.low,
      &w.low_edge,
      &w.high,
      &w.high_edge,
      &w.left_input,
      &w.right_input};
  for (int f = 0; f < 6; ++f)
    hn::StoreU(*fields[f], d, whole[f]);
  hn::StoreU(w.left, Tag<A>(), part[0]);
  hn::StoreU(w.right, Tag<A>(), part[1]);
  for (int i = 0; i < L; ++i)
    out[i] = {
        whole[0][i],
        whole[1][i],
        whole[2][i],
        whole[3][i],
        part[0][i],
        part[1][i],
        whole[4][i],
        whole[5][i]};
}

template <class A>
WindowLanes<A> load_windows(const TalkWindow<A>* from) {
  constexpr int L = kLanes<A>;
  const auto whole = [&](int32_t TalkWindow<A>::*field) HWY_ATTR {
    int32_t lanes[L];
    for (int i = 0; i < L; ++i)
      lanes[i] = from[i].*field;
    return hn::LoadU(IntTag<A>(), lanes);
  };
  const auto part = [&](A TalkWindow<A>::*field) HWY_ATTR {
    A lanes[L];
    for (int i = 0; i < L; ++i)
      lanes[i] = from[i].*field;
    return hn::LoadU(Tag<A>(), lanes);
  };
  using W = TalkWindow<A>;
  return {
      whole(&W::low),
      whole(&W::low_edge),
      whole(&W::high),
      whole(&W::high_edge),
      part(&W::left),
      part(&W::right),
      whole(&W::left_input),
      whole(&W::right_input)};
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
