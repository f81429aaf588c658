#if defined(SEQCONV_KERNELS_TALK_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#endif

#include <hwy/cache_control.h>

#include <bit>
#include <utility>

#include "kernels/cache_line.h"
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

template <class S, class A>
TalkExtremes<A> talk_extremes(const S* values, int64_t count) {
  const Tag<A> d;
  auto least = hn::Zero(d), most = least;
  for (int64_t i = 0; i < count; i += kLanes<A>) {
    const auto v = load_some<A>(values + i, count - i);
    // Comparisons with NaN are false.
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  return {
      hn::GetLane(hn::MinOfLanes(d, least)),
      hn::GetLane(hn::MaxOfLanes(d, most))};
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

#if HWY_TARGET != HWY_SCALAR
/// Four numbers in every block of four lanes, of rows i, i + 4, ...; rows
/// beyond the last are that one again.
template <int kBlocks, class O>
HWY_INLINE auto
blocks_of_rows(const O* first, int64_t stride, int64_t i, int64_t last) {
  const hn::CappedTag<float, 4 * kBlocks> d;
  if constexpr (kBlocks == 1)
    return load_all(d, first + HWY_MIN(i, last) * stride);
  else
    return hn::Combine(
        d,
        blocks_of_rows<kBlocks / 2>(first, stride, i + 2 * kBlocks, last),
        blocks_of_rows<kBlocks / 2>(first, stride, i, last));
}

/// Four columns, each in a vector of its own. Rows beyond the last are that one
/// again.
template <class O>
HWY_INLINE void
four_columns(const O* first, int64_t stride, int64_t last, Vec<float>* out) {
  const Tag<float> d;
  const hn::Repartition<double, Tag<float>> dd;
  constexpr int kBlocks = kLanes<float> / 4;
  Vec<float> v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    v[i] = blocks_of_rows<kBlocks>(first, stride, i, last);
  const auto low = hn::BitCast(dd, hn::InterleaveLower(d, v[0], v[1]));
  const auto high = hn::BitCast(dd, hn::InterleaveUpper(d, v[0], v[1]));
  const auto low2 = hn::BitCast(dd, hn::InterleaveLower(d, v[2], v[3]));
  const auto high2 = hn::BitCast(dd, hn::InterleaveUpper(d, v[2], v[3]));
  out[0] = hn::BitCast(d, hn::InterleaveLower(dd, low, low2));
  out[1] = hn::BitCast(d, hn::InterleaveUpper(dd, low, low2));
  out[2] = hn::BitCast(d, hn::InterleaveLower(dd, high, high2));
  out[3] = hn::BitCast(d, hn::InterleaveUpper(dd, high, high2));
}
#endif

template <class O, class A>
void talk_distances(
    const TalkOffsets<O>& in,
    A tokens,
    int64_t pitch,
    A* distances) {
  [[maybe_unused]] constexpr int64_t L = kLanes<A>;
  int64_t h = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(A) == 4)
    for (; h + 4 <= in.heads; h += 4)
      for (int64_t t = 0; t < in.rows; t += L) {
        const O* const from = in.data + t * in.heads + h;
        Vec<A> of[4];
        if (t + L <= in.rows)
          four_columns(from, in.heads, L - 1, of);
        else
          four_columns(from, in.heads, in.rows - t - 1, of);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          hn::StoreU(
              hn::Mul(of[i], hn::Set(Tag<A>(), tokens)),
              Tag<A>(),
              distances + (h + i) * pitch + t);
      }
#endif
  for (; h < in.heads; ++h)
    for (int64_t t = 0; t < in.rows; ++t)
      distances[h * pitch + t] = widen(in.data[t * in.heads + h]) * tokens;
}

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

/// Two numbers that lie together, by one load of a vector: every load of an
/// integer would hold up those of vectors.
HWY_INLINE std::pair<int64_t, int64_t> two_numbers(const int32_t* p) {
#if HWY_TARGET == HWY_SCALAR
  return {p[0], p[1]};
#else
  const hn::CappedTag<int64_t, 1> d;
  const hn::CappedTag<int32_t, 2> d32;
  const auto both =
      scalar(hn::GetLane(in_register(hn::BitCast(d, hn::LoadU(d32, p)))));
  return {static_cast<int32_t>(both), both >> 32};
#endif
}

/// What stands at the borders of a window.
template <class T>
struct Borders {
  T *low, *low_edge, *high, *high_edge;

  template <class A>
  HWY_INLINE Borders(T* from, const TalkWindow<A>& w) {
#if HWY_TARGET == HWY_SCALAR
    low = from + w.low;
    low_edge = from + w.low_edge;
    high = from + w.high;
    high_edge = from + w.high_edge;
#else
    // One load for all four: two_numbers() twice takes longer.
    const hn::Full128<uint64_t> d;
    const auto four =
        in_register(hn::BitCast(d, hn::LoadU(hn::Full128<int32_t>(), &w.low)));
    const uint64_t lows = scalar(hn::ExtractLane(four, 0));
    const uint64_t highs = scalar(hn::ExtractLane(four, 1));
    low = scalar(from + static_cast<uint32_t>(lows));
    low_edge = scalar(from + (lows >> 32));
    high = scalar(from + static_cast<uint32_t>(highs));
    high_edge = scalar(from + (highs >> 32));
#endif
  }
};

/// How the vectors of a row are stored: whole, the first `tail` lanes of one,
/// or whole and past the caches.
enum class Stores { kWhole, kTail, kStreaming };

/// Channels that one pass over the rows serves: NV vectors, or one of `tail`
/// channels.
template <class A, int NV, Stores kStores>
struct Columns {
  int64_t tail = kLanes<A>;

  template <class S>
  HWY_INLINE Vec<A> get(const S* p, int v) const {
    return kStores == Stores::kTail ? load_some<A>(p, tail)
                                    : load_wide(p + v * kLanes<A>);
  }
  template <class S>
  HWY_INLINE void put(Vec<A> value, S* p, int v) const {
    if (kStores == Stores::kTail)
      store_some<A>(value, p, tail);
    else if (kStores == Stores::kStreaming)
      store_streaming(value, p + v * kLanes<A>);
    else
      store_narrow(value, p + v * kLanes<A>);
  }
  /// A row that will be read later.
  template <class S>
  HWY_INLINE void prefetch(const S* p) const {
    if (kStores != Stores::kTail)
      fetch_lines(p, NV * kLanes<A> * int64_t{sizeof(S)});
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
