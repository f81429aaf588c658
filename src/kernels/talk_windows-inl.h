#if defined(SEQCONV_KERNELS_TALK_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#endif

#include <hwy/cache_control.h>

#include <utility>

#include "kernels/cache_line.h"
#include "kernels/talk_tile_ops.h"
#include "kernels/vectors-inl.h"

/// TaLK's windows, and columns of channels that share them.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class A>
using IntTag = hn::Rebind<int32_t, Tag<A>>;

/// Numbers that are whole as int32.
HWY_INLINE hn::Vec<IntTag<float>> to_whole(Vec<float> v) {
  return hn::ConvertTo(IntTag<float>(), v);
}
HWY_INLINE hn::Vec<IntTag<double>> to_whole(Vec<double> v) {
  return hn::DemoteTo(IntTag<double>(), v);
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

/// Rows as places.
template <class A>
class Places {
 public:
  explicit Places(const TalkPlaces& places)
      : last_(hn::Set(d_, static_cast<A>(places.last))),
        ring_(hn::Set(d_, static_cast<A>(places.ring))),
        inverse_(hn::Set(d_, A(1) / static_cast<A>(places.ring))),
        half_(hn::Set(d_, A(0.5) / static_cast<A>(places.ring))),
        pitch_(hn::Set(IntTag<A>(), static_cast<int32_t>(places.pitch))) {}

  HWY_INLINE hn::Vec<IntTag<A>> of(Vec<A> row) const {
    row = hn::Max(hn::Zero(d_), hn::Min(row, last_));
    // Half a row more, so that rounding never takes it to the round before.
    const auto rounds = hn::Floor(hn::MulAdd(row, inverse_, half_));
    const auto slot = to_whole(hn::NegMulAdd(rounds, ring_, row));
    return hn::Mul(slot, pitch_);
  }

 private:
  static constexpr Tag<A> d_{};
  Vec<A> last_, ring_, inverse_, half_;
  hn::Vec<IntTag<A>> pitch_;
};

/// A distance as whole tokens and a fraction, both clipped to [least, most];
/// NaN is a fraction.
template <class A>
struct Distance {
  Vec<A> whole, rest;

  HWY_INLINE Distance(Vec<A> distance, Vec<A> least, Vec<A> most) {
    const auto clipped = hn::Max(least, hn::Min(distance, most));
    const auto nan = hn::IsNaN(distance);
    whole = hn::Floor(clipped);
    rest = hn::IfThenElse(nan, distance, hn::Sub(clipped, whole));
    whole = hn::IfThenZeroElse(nan, whole);
  }
  /// 1 where there is a fraction.
  HWY_INLINE Vec<A> edge() const {
    const Tag<A> d;
    return hn::IfThenElseZero(hn::Gt(rest, hn::Zero(d)), hn::Set(d, A(1)));
  }
};

/// One vector of windows at positions t of a sequence whose last one is `last`.
template <class A>
HWY_INLINE void talk_window(
    const Distance<A>& left,
    const Distance<A>& right,
    Vec<A> t,
    Vec<A> origin,
    const Places<A>& places,
    const TalkWindows<A>& out) {
  const Tag<A> d;
  const auto row = hn::Sub(t, origin), one = hn::Set(d, A(1));
  const auto low = hn::Sub(row, left.whole);
  const auto high = hn::Add(hn::Add(row, right.whole), one);
  hn::StoreInterleaved4(
      places.of(low),
      places.of(hn::Sub(low, left.edge())),
      places.of(high),
      places.of(hn::Add(high, right.edge())),
      IntTag<A>(),
      out.places);
  hn::StoreInterleaved2(left.rest, right.rest, d, out.fractions);
}

/// The inputs that fractions are of, counted from position `first`; with a NaN
/// there may be none behind the border.
template <class A>
HWY_INLINE void talk_inputs(
    const Distance<A>& left,
    const Distance<A>& right,
    Vec<A> t,
    Vec<A> first,
    Vec<A> last,
    const TalkWindows<A>& out) {
  const auto input = [&](Vec<A> position) HWY_ATTR {
    position = hn::Max(hn::Zero(Tag<A>()), hn::Min(position, last));
    return to_whole(hn::Sub(position, first));
  };
  hn::StoreInterleaved2(
      input(hn::Sub(hn::Sub(t, left.whole), left.edge())),
      input(hn::Add(hn::Add(t, right.whole), right.edge())),
      IntTag<A>(),
      out.inputs);
}

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

/// Reads and writes whole vectors: the arrays have room for kTalkLanes more
/// entries.
template <class A>
void talk_windows(
    const TalkDistances<A>& in,
    const TalkPlaces& places,
    const TalkWindows<A>& out) {
  const Tag<A> d;
  constexpr int64_t L = kLanes<A>;
  const auto first = hn::Set(d, static_cast<A>(in.first));
  const auto last = hn::Set(d, static_cast<A>(in.valid - 1));
  const auto origin = hn::Set(d, static_cast<A>(places.origin));
  const Places<A> to_places(places);
  // Entries beyond the count are windows of the last position.
  const auto end =
      hn::Set(d, static_cast<A>(in.first + (in.count - 1) / in.lanes));
  const auto position = hn::Set(d, A(1) / static_cast<A>(in.lanes));
  const auto vector = hn::Set(d, static_cast<A>(L));
  for (int64_t h = 0; h < in.heads; ++h) {
    auto entry = hn::Iota(d, A(0));
    for (int64_t i = 0; i < in.count; i += L) {
      const auto t =
          hn::Min(hn::Add(first, hn::Floor(hn::Mul(entry, position))), end);
      entry = hn::Add(entry, vector);
      const int64_t at = h * in.pitch + i;
      const auto back = t, ahead = hn::Sub(last, t);
      const Distance<A> left(load(in.left + at), hn::Neg(ahead), back);
      const Distance<A> right(
          in.right == nullptr ? hn::Zero(d) : load(in.right + at),
          hn::Neg(back),
          ahead);
      talk_window<A>(left, right, t, origin, to_places, out + at);
      if (out.inputs != nullptr)
        talk_inputs<A>(left, right, t, first, last, out + at);
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

  /// `places` as in TalkWindows.
  HWY_INLINE Borders(T* from, const int32_t* places) {
#if HWY_TARGET == HWY_SCALAR
    low = from + places[0];
    low_edge = from + places[1];
    high = from + places[2];
    high_edge = from + places[3];
#else
    // One load for all four: two_numbers() twice takes longer.
    const hn::Full128<uint64_t> d;
    const auto four =
        in_register(hn::BitCast(d, hn::LoadU(hn::Full128<int32_t>(), places)));
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
