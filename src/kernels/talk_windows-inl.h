#if defined(SEQCONV_KERNELS_TALK_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#endif

#include <hwy/cache_control.h>

#include <bit>

#include "kernels/cache_line.h"
#include "kernels/channels-inl.h"
#include "kernels/talk_window_lanes-inl.h"

/// TaLK's windows, and columns of channels that share them.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Numbers that are whole as int32.
HWY_INLINE IntVec<float> to_whole(Vec<float> v) {
  return hn::ConvertTo(IntTag<float>(), v);
}
HWY_INLINE IntVec<double> to_whole(Vec<double> v) {
  return hn::DemoteTo(IntTag<double>(), v);
}

/// Whole numbers as numbers of the type A.
template <class A>
HWY_INLINE Vec<A> to_real(IntVec<A> v) {
  if constexpr (sizeof(A) == 4)
    return hn::ConvertTo(Tag<A>(), v);
  else
    return hn::PromoteTo(Tag<A>(), v);
}

/// 1 where v > 0.
HWY_INLINE IntVec<float> positive(Vec<float> v) {
  const IntTag<float> d;
  const auto some = hn::RebindMask(d, hn::Gt(v, hn::Zero(Tag<float>())));
  return hn::IfThenElseZero(some, hn::Set(d, 1));
}
HWY_INLINE IntVec<double> positive(Vec<double> v) {
  const Tag<double> d;
  return to_whole(hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), hn::Set(d, 1.0)));
}

template <class A>
HWY_INLINE IntVec<A> clamp(IntVec<A> v, IntVec<A> last) {
  return hn::Max(hn::Zero(IntTag<A>()), hn::Min(v, last));
}

/// Rows as places.
template <class A>
class Places {
 public:
  explicit Places(const TalkPlaces& places)
      : last_(hn::Set(d_, static_cast<int32_t>(places.last))),
        slots_(hn::Set(d_, static_cast<int32_t>(places.ring - 1))),
        shift_(std::countr_zero(static_cast<uint64_t>(places.pitch))) {}

  HWY_INLINE IntVec<A> of(IntVec<A> row) const {
    return hn::ShiftLeftSame(hn::And(clamp<A>(row, last_), slots_), shift_);
  }

 private:
  static constexpr IntTag<A> d_{};
  IntVec<A> last_, slots_;
  int shift_;
};

/// A distance as whole tokens and a fraction, both clipped to [least, most];
/// NaN is a fraction.
template <class A>
struct Distance {
  IntVec<A> whole;
  IntVec<A> edge;  ///< whole, and 1 more where there is a fraction
  Vec<A> rest;

  HWY_INLINE Distance(Vec<A> distance, Vec<A> least, Vec<A> most) {
    const auto clipped = hn::Max(least, hn::Min(distance, most));
    const auto nan = hn::IsNaN(distance);
    const auto tokens = hn::Floor(clipped);
    rest = hn::IfThenElse(nan, distance, hn::Sub(clipped, tokens));
    whole = to_whole(hn::IfThenZeroElse(nan, tokens));
    edge = hn::Add(whole, positive(rest));
  }
};

/// Makes windows of kLanes entries.
template <class A>
class WindowVectors {
 public:
  WindowVectors(const TalkDistances<A>& in, const TalkPlaces& places)
      : places_(places),
        first_(all(in.first)),
        last_(all(in.valid - 1)),
        end_(all(in.first + (in.count - 1) / in.lanes)),
        origin_(all(places.origin)),
        shift_(std::countr_zero(static_cast<uint64_t>(in.lanes))),
        inputs_(in.inputs) {}

  /// Of the distances of these entries; those beyond the count are of the last
  /// position.
  HWY_INLINE WindowLanes<A>
  make(IntVec<A> entries, Vec<A> to_left, Vec<A> to_right) const {
    const auto position = hn::ShiftRightSame(entries, shift_);
    const auto t = hn::Min(hn::Add(first_, position), end_);
    const auto back = to_real<A>(t), ahead = to_real<A>(hn::Sub(last_, t));
    const Distance<A> left(to_left, hn::Neg(ahead), back);
    const Distance<A> right(to_right, hn::Neg(back), ahead);
    const auto row = hn::Sub(t, origin_), behind = hn::Add(row, all(1));
    WindowLanes<A> w = {
        places_.of(hn::Sub(row, left.whole)),
        places_.of(hn::Sub(row, left.edge)),
        places_.of(hn::Add(behind, right.whole)),
        places_.of(hn::Add(behind, right.edge)),
        left.rest,
        right.rest,
        all(0),
        all(0)};
    if (inputs_) {
      // With a NaN there may be none behind the border.
      w.left_input = input(hn::Sub(t, left.edge));
      w.right_input = input(hn::Add(t, right.edge));
    }
    return w;
  }

 private:
  static HWY_INLINE IntVec<A> all(int64_t n) {
    return hn::Set(IntTag<A>(), static_cast<int32_t>(n));
  }
  HWY_INLINE IntVec<A> input(IntVec<A> position) const {
    return hn::Sub(clamp<A>(position, last_), first_);
  }

  const Places<A> places_;
  const IntVec<A> first_, last_, end_, origin_;
  const int shift_;
  const bool inputs_;
};

/// Reads and writes whole vectors: the arrays have room for kTalkLanes more
/// entries.
template <class A>
void talk_windows(
    const TalkDistances<A>& in,
    const TalkPlaces& places,
    TalkWindow<A>* out) {
  constexpr int L = kLanes<A>;
  const LaneOrder<A> order;
  const WindowVectors<A> windows(in, places);
  const auto vector = hn::Set(IntTag<A>(), L);
  for (int64_t h = 0; h < in.heads; ++h) {
    auto entries = order.entries();
    for (int64_t i = 0; i < in.count; i += L) {
      const int64_t at = h * in.pitch + i;
      const auto right =
          in.right == nullptr ? hn::Zero(Tag<A>()) : load(in.right + at);
      store_windows(
          windows.make(
              entries,
              order.lanes(load(in.left + at)),
              order.lanes(right)),
          out + at);
      entries = hn::Add(entries, vector);
    }
  }
}

/// What stands where a window begins or ends.
template <class T>
struct Border {
  T *whole, *edge;
};

#if HWY_TARGET == HWY_SCALAR
/// The places of a window.
template <class A>
class WindowPlaces {
 public:
  explicit WindowPlaces(const TalkWindow<A>& w) : w_(w) {}

  template <class T>
  Border<T> begin(T* from) const {
    return {from + w_.low, from + w_.low_edge};
  }
  template <class T>
  Border<T> end(T* from) const {
    return {from + w_.high, from + w_.high_edge};
  }
  int64_t left_input() const { return w_.left_input; }
  int64_t right_input() const { return w_.right_input; }
  template <class V>
  void wait_for(V) {}

 private:
  const TalkWindow<A>& w_;
};
#else
/// The places of a window, by two loads of vectors: every load of an integer
/// would hold up those of vectors.
template <class A>
class WindowPlaces {
 public:
  HWY_INLINE explicit WindowPlaces(const TalkWindow<A>& w)
      : borders_(in_register(
            hn::BitCast(d_, hn::LoadU(hn::Full128<int32_t>(), &w.low)))),
        inputs_(in_register(hn::BitCast(
            hn::Full64<int64_t>(),
            hn::LoadU(hn::Full64<int32_t>(), &w.left_input)))) {}

  template <class T>
  HWY_INLINE Border<T> begin(T* from) const {
    return border(from, hn::ExtractLane(borders_, 0));
  }
  template <class T>
  HWY_INLINE Border<T> end(T* from) const {
    return border(from, hn::ExtractLane(borders_, 1));
  }
  HWY_INLINE int64_t left_input() const {
    return static_cast<int32_t>(scalar(hn::GetLane(inputs_)));
  }
  HWY_INLINE int64_t right_input() const {
    return scalar(hn::GetLane(inputs_)) >> 32;
  }
  /// What is asked for later takes no registers before `v` is known.
  template <class V>
  HWY_INLINE void wait_for(V v) {
    borders_ = in_register_after(borders_, v);
    inputs_ = in_register_after(inputs_, v);
  }

 private:
  static constexpr hn::Full128<uint64_t> d_{};

  template <class T>
  HWY_INLINE static Border<T> border(T* from, uint64_t places) {
    places = scalar(places);
    return {
        scalar(from + static_cast<uint32_t>(places)),
        scalar(from + (places >> 32))};
  }

  hn::Vec<hn::Full128<uint64_t>> borders_;
  hn::Vec<hn::Full64<int64_t>> inputs_;
};
#endif

/// How the vectors of a row are stored: whole, the first `tail` lanes of one,
/// or whole and past the caches.
enum class Stores { kWhole, kTail, kStreaming };

/// Channels that one pass over the rows serves: NV vectors, or one of `tail`
/// channels.
template <class A, int NV, Stores kStores>
struct Columns {
  int64_t tail = kLanes<A>;

  static_assert(kStores != Stores::kTail || NV == 1);

  template <class S>
  HWY_INLINE Vec<A> get(const S* p, int v) const {
    return kStores == Stores::kTail ? load_some<A>(p, tail)
                                    : load_channels<NV>(p, v);
  }
  /// Vectors v, v + 1, ... as many as share channels.
  template <class S>
  HWY_INLINE void put(const Vec<A>* values, S* p, int v) const {
    constexpr int kShares = kSharing<S, NV>;
    if (kStores == Stores::kTail)
      store_some<A>(*values, p, tail);
    else
      store_channels<kShares>(
          values,
          p + v * kLanes<A>,
          kStores == Stores::kStreaming);
  }
  /// A row of the next strip: so many would drive out each other, and the sums,
  /// from the first-level cache.
  template <OwnCache kCache = OwnCache::kSecond, class S>
  HWY_INLINE void prefetch(const S* p) const {
    if (kStores != Stores::kTail)
      fetch_lines<kCache>(p, NV * kLanes<A> * int64_t{sizeof(S)});
  }
};

/// Whether all lanes are finite numbers.
template <class A, int NV>
HWY_INLINE bool all_finite(const Vec<A> (&v)[NV]) {
  const Tag<A> d;
  auto off = hn::Zero(d);
  for (int i = 0; i < NV; ++i)
    off = hn::Add(off, hn::Sub(v[i], v[i]));
  return hn::AllTrue(d, hn::Eq(off, hn::Zero(d)));
}

/// Whether CALL(tile, columns) is true for all of the tile's channels, four
/// vectors at a time where there are as many.
#define SEQCONV_FOR_COLUMNS(CALL)                                        \
  constexpr int64_t L = kLanes<A>;                                       \
  int64_t left = tile.channels;                                          \
  auto rest = tile;                                                      \
  bool good = true;                                                      \
  for (; left >= 4 * L; left -= 4 * L, advance(rest, 4 * L))             \
    good = (tile.streaming ? CALL<S, A, 4, Stores::kStreaming>(rest, {}) \
                           : CALL<S, A, 4, Stores::kWhole>(rest, {})) && \
        good;                                                            \
  for (; left >= L; left -= L, advance(rest, L))                         \
    good = CALL<S, A, 1, Stores::kWhole>(rest, {}) && good;              \
  if (left > 0)                                                          \
    good = CALL<S, A, 1, Stores::kTail>(rest, {left}) && good;           \
  if (tile.streaming)                                                    \
    hwy::FlushStream();                                                  \
  return good

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
