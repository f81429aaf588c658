#if defined(SEQCONV_KERNELS_TALK_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_TILE_INL_H
#undef SEQCONV_KERNELS_TALK_TILE_INL_H
#else
#define SEQCONV_KERNELS_TALK_TILE_INL_H
#endif

#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

/// TaLK on a tile: prefix sums that begin anew in every tile, so that rounding
/// depends on the window and not on T, and their transpose.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class A>
using IntTag = hn::Rebind<int32_t, Tag<A>>;

/// Stores numbers that are whole as int32.
HWY_INLINE void store_whole(Vec<float> v, int32_t* p) {
  const IntTag<float> d;
  hn::StoreU(hn::ConvertTo(d, v), d, p);
}
HWY_INLINE void store_whole(Vec<double> v, int32_t* p) {
  const IntTag<double> d;
  hn::StoreU(hn::DemoteTo(d, v), d, p);
}

/// One vector of windows at positions t, relative to the origin; keeps the
/// lowest and highest of their rows.
template <class A>
HWY_INLINE void talk_window(
    Vec<A> left,
    Vec<A> right,
    Vec<A> back,
    Vec<A> ahead,
    Vec<A> row,
    const TalkWindows<A>& out,
    Vec<A>& lowest,
    Vec<A>& highest) {
  const Tag<A> d;
  const auto zero = hn::Zero(d), one = hn::Set(d, A(1));
  const auto split =
      [&](Vec<A> distance, Vec<A> most, Vec<A> least, Vec<A>& whole) HWY_ATTR {
        whole = hn::Floor(distance);
        auto rest = hn::Sub(distance, whole);
        const auto over = hn::Ge(distance, most),
                   under = hn::Le(distance, least);
        whole = hn::IfThenElse(over, most, hn::IfThenElse(under, least, whole));
        rest = hn::IfThenElse(hn::Or(over, under), zero, rest);
        const auto nan = hn::IsNaN(distance);
        whole = hn::IfThenElse(nan, zero, whole);
        return hn::IfThenElse(nan, distance, rest);
      };
  Vec<A> whole = zero;
  const auto left_rest = split(left, back, hn::Neg(ahead), whole);
  const auto low = hn::Sub(row, whole);
  const auto low_edge =
      hn::Sub(low, hn::IfThenElseZero(hn::Gt(left_rest, zero), one));
  store_whole(low, out.low);
  store_whole(low_edge, out.low_edge);
  hn::StoreU(left_rest, d, out.left);
  const auto right_rest = split(right, ahead, hn::Neg(back), whole);
  const auto high = hn::Add(hn::Add(row, whole), one);
  const auto high_edge =
      hn::Add(high, hn::IfThenElseZero(hn::Gt(right_rest, zero), one));
  store_whole(high, out.high);
  store_whole(high_edge, out.high_edge);
  hn::StoreU(right_rest, d, out.right);
  lowest = hn::Min(lowest, hn::Min(low_edge, high));
  highest = hn::Max(highest, hn::Max(high_edge, low));
}

/// Writes whole vectors: the arrays have room for kTalkLanes more entries.
template <class A>
TalkRange talk_windows(const TalkDistances<A>& in, const TalkWindows<A>& out) {
  const Tag<A> d;
  constexpr int64_t L = kLanes<A>;
  const auto zero = hn::Zero(d), iota = hn::Iota(d, A(0));
  const auto last = hn::Set(d, static_cast<A>(in.valid - 1));
  // Entries beyond the count are windows of the last position.
  const auto end =
      hn::Set(d, static_cast<A>(in.first + (in.count - 1) / in.lanes));
  auto lowest = hn::Set(d, static_cast<A>(in.valid)), highest = hn::Neg(lowest);
  for (int64_t i = 0; i < in.count; i += L) {
    auto t = hn::Set(d, static_cast<A>(in.first + i / in.lanes));
    if (in.lanes == 1)
      t = hn::Min(hn::Add(t, iota), end);
    talk_window<A>(
        load_some<A>(in.left + i, in.count - i),
        in.right == nullptr ? zero : load_some<A>(in.right + i, in.count - i),
        t,
        hn::Sub(last, t),
        hn::Sub(t, hn::Set(d, static_cast<A>(in.origin))),
        out + i,
        lowest,
        highest);
  }
  return {
      static_cast<int64_t>(hn::GetLane(hn::MinOfLanes(d, lowest))),
      static_cast<int64_t>(hn::GetLane(hn::MaxOfLanes(d, highest)))};
}

/// Channels that one pass over the rows serves: NV vectors, or one of `tail`
/// channels.
template <class A, int NV, bool kTail>
struct Columns {
  int64_t tail;

  template <class S>
  HWY_INLINE Vec<A> get(const S* p, int v) const {
    return kTail ? load_some<A>(p, tail) : load_wide(p + v * kLanes<A>);
  }
  template <class S>
  HWY_INLINE void put(Vec<A> value, S* p, int v) const {
    if (kTail)
      store_some<A>(value, p, tail);
    else
      store_narrow(value, p + v * kLanes<A>);
  }
};

/// Adds rows [made, until) of x to the prefix sums `sums` [., NV * lanes].
template <class S, class A, int NV, bool kTail>
HWY_INLINE void extend_sums(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kTail>& columns,
    int64_t made,
    int64_t until,
    Vec<A> (&sum)[NV]) {
  constexpr int64_t L = kLanes<A>, pitch = NV * L;
  for (int64_t r = made; r < until; ++r) {
    const S* const x = tile.x + r * tile.x_stride;
    A* const to = tile.sums + (r + 1) * pitch;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      sum[v] = hn::Add(sum[v], columns.get(x, v));
      hn::Store(sum[v], Tag<A>(), to + v * L);
    }
  }
}

/// Whether all lanes are finite numbers.
template <class A, int NV>
HWY_INLINE bool all_finite(const Vec<A> (&v)[NV]) {
  const Tag<A> d;
  auto off = hn::Zero(d);
  for (int i = 0; i < NV; ++i)
    off = hn::Add(off, hn::Sub(v[i], v[i]));
  return hn::AllTrue(d, hn::Eq(off, hn::Zero(d)));
}

/// Prefix sums spread a NaN or infinity over everything behind it: such a tile
/// is summed window by window.
template <class S, class A>
void sum_windows_singly(const TalkTile<S, A>& tile, int64_t channels) {
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      const TalkWindows<A> w =
          tile.windows + (tile.lane_windows ? t * kTalkLanes + c : t);
      const auto x = [&](int64_t r) HWY_ATTR {
        A lane[1];
        if constexpr (std::is_same_v<S, BFloat16>)
          lane[0] = to_float(tile.x[r * tile.x_stride + c]);
        else
          lane[0] = tile.x[r * tile.x_stride + c];
        return lane[0];
      };
      A sum = 0;
      for (int64_t r = *w.low; r < *w.high; ++r)
        sum += x(r);
      for (int64_t r = *w.high; r < *w.low; ++r)
        sum -= x(r);
      if (*w.left != 0)
        sum += *w.left * (*w.left > 0 ? x(*w.low_edge) : A(1));
      if (*w.right != 0)
        sum += *w.right * (*w.right > 0 ? x(*w.high) : A(1));
      sum *= tile.scale;
      S* const y = tile.y + t * tile.y_stride + c;
      if constexpr (std::is_same_v<S, BFloat16>)
        *y = to_bfloat16(sum);
      else
        *y = sum;
    }
}

/// Rows of outputs that are made before more prefix sums are.
inline constexpr int64_t kTalkChunk = 16;

template <class S, class A, int NV, bool kTail>
HWY_INLINE void talk_columns(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kTail>& columns) {
  constexpr int64_t L = kLanes<A>, pitch = NV * L;
  const Tag<A> d;
  Vec<A> sum[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    sum[v] = hn::Zero(d);
    hn::Store(sum[v], d, tile.sums + tile.begin * pitch + v * L);
  }
  const auto scale = hn::Set(d, tile.scale);
  int64_t made = tile.begin;
  for (int64_t first = 0; first < tile.rows; first += kTalkChunk) {
    const int64_t end = HWY_MIN(tile.rows, first + kTalkChunk);
    int32_t need = static_cast<int32_t>(made);
    for (int64_t t = first; t < end; ++t) {
      need = HWY_MAX(need, tile.windows.high_edge[t]);
      need = HWY_MAX(need, tile.windows.low[t]);
    }
    extend_sums<S, A, NV, kTail>(tile, columns, made, need, sum);
    made = need;
    for (int64_t t = first; t < end; ++t) {
      const TalkWindows<A> w = tile.windows + t;
      const A* const low = tile.sums + *w.low * pitch;
      const A* const low_edge = tile.sums + *w.low_edge * pitch;
      const A* const high = tile.sums + *w.high * pitch;
      const A* const high_edge = tile.sums + *w.high_edge * pitch;
      const auto left = hn::Set(d, *w.left), right = hn::Set(d, *w.right);
      S* const y = tile.y + t * tile.y_stride;
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const auto l = hn::Load(d, low + v * L);
        const auto h = hn::Load(d, high + v * L);
        const auto begin =
            hn::MulAdd(left, hn::Sub(hn::Load(d, low_edge + v * L), l), l);
        const auto until =
            hn::MulAdd(right, hn::Sub(hn::Load(d, high_edge + v * L), h), h);
        columns.put(hn::Mul(hn::Sub(until, begin), scale), y, v);
      }
    }
  }
  if (!all_finite<A, NV>(sum))
    sum_windows_singly(tile, kTail ? columns.tail : NV * L);
}

/// The entries of kTalkLanes windows as places in rows of kTalkLanes.
template <class A>
HWY_INLINE auto lane_places(const int32_t* rows, int64_t lane) {
  const hn::RebindToSigned<Tag<A>> d;
  const auto column = hn::Iota(d, static_cast<hn::TFromD<decltype(d)>>(lane));
  const auto widened = [&]() HWY_ATTR {
    if constexpr (sizeof(A) == 4)
      return hn::LoadU(d, rows + lane);
    else
      return hn::PromoteTo(d, hn::LoadU(IntTag<A>(), rows + lane));
  }();
  return hn::Add(hn::ShiftLeft<4>(widened), column);
}

/// The same with a window of its own for every channel.
template <class S, class A>
HWY_INLINE void talk_lanes(const TalkTile<S, A>& tile) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const int64_t count = tile.channels;
  bool finite = true;
  for (int64_t c = 0; c < count; c += L) {
    auto sum = hn::Zero(d);
    hn::StoreU(sum, d, tile.sums + tile.begin * kTalkLanes + c);
    for (int64_t r = tile.begin; r < tile.end; ++r) {
      sum =
          hn::Add(sum, load_some<A>(tile.x + r * tile.x_stride + c, count - c));
      hn::StoreU(sum, d, tile.sums + (r + 1) * kTalkLanes + c);
    }
    const Vec<A> last[1] = {sum};
    finite = finite && all_finite<A, 1>(last);
  }
  if (!finite)
    return sum_windows_singly(tile, count);
  const auto scale = hn::Set(d, tile.scale);
  for (int64_t t = 0; t < tile.rows; ++t) {
    const TalkWindows<A> w = tile.windows + t * kTalkLanes;
    for (int64_t c = 0; c < count; c += L) {
      const auto at = [&](const int32_t* rows) HWY_ATTR {
        return hn::GatherIndex(d, tile.sums, lane_places<A>(rows, c));
      };
      const auto l = at(w.low), h = at(w.high);
      const auto begin =
          hn::MulAdd(load(w.left + c), hn::Sub(at(w.low_edge), l), l);
      const auto until =
          hn::MulAdd(load(w.right + c), hn::Sub(at(w.high_edge), h), h);
      store_some<A>(
          hn::Mul(hn::Sub(until, begin), scale),
          tile.y + t * tile.y_stride + c,
          count - c);
    }
  }
}

/// Calls CALL(tile, columns) with as many vectors as the channels need.
#define SEQCONV_FOR_COLUMNS(CALL)                              \
  constexpr int64_t L = kLanes<A>;                             \
  int64_t left = tile.channels;                                \
  auto rest = tile;                                            \
  if constexpr (kRegisters == 32)                              \
    for (; left >= 4 * L; left -= 4 * L, advance(rest, 4 * L)) \
      CALL<S, A, 4, false>(rest, {0});                         \
  for (; left >= L; left -= L, advance(rest, L))               \
    CALL<S, A, 1, false>(rest, {0});                           \
  if (left > 0)                                                \
  CALL<S, A, 1, true>(rest, {left})

template <class S, class A>
HWY_INLINE void advance(TalkTile<S, A>& tile, int64_t channels) {
  tile.x += channels;
  tile.y += channels;
  tile.channels -= channels;
}

template <class S, class A>
void talk_forward_tile(const TalkTile<S, A>& tile) {
  if (tile.lane_windows)
    return talk_lanes(tile);
  SEQCONV_FOR_COLUMNS(talk_columns);
}

/// Borders clipped to rows 0 .. span of the tile. A border at 0 touches none of
/// its inputs.
struct ClippedWindow {
  int64_t low, low_edge, high, high_edge;

  template <class A>
  ClippedWindow(const TalkWindows<A>& w, int64_t span)
      : low(clip(*w.low, span)),
        low_edge(clip(*w.low_edge, span)),
        high(clip(*w.high, span)),
        high_edge(clip(*w.high_edge, span)) {}

  static int64_t clip(int64_t row, int64_t span) {
    return row < 0 ? 0 : row > span ? span : row;
  }
  /// Whether the window holds no input of the tile.
  bool empty() const {
    return low == low_edge && low == high && low == high_edge;
  }
};

/// The gradient of each input as a sum over the windows that hold it: what
/// prefix sums would spread is added up one by one.
template <class S, class A>
void spread_windows_singly(const TalkGradTile<S, A>& tile, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t s = 0; s < tile.span; ++s) {
      A sum = 0;
      for (int64_t t = 0; t < tile.rows; ++t) {
        const TalkWindows<A> w =
            tile.windows + (tile.lane_windows ? t * kTalkLanes + c : t);
        A g;
        if constexpr (std::is_same_v<S, BFloat16>)
          g = to_float(tile.g[t * tile.g_stride + c]);
        else
          g = tile.g[t * tile.g_stride + c];
        if (s >= *w.low && s < *w.high)
          sum += g;
        if (s >= *w.high && s < *w.low)
          sum -= g;
        if (*w.left > 0 && s == *w.low_edge)
          sum += *w.left * g;
        if (*w.right > 0 && s == *w.high)
          sum += *w.right * g;
        if ((*w.left != *w.left || *w.right != *w.right) && s >= *w.low &&
            s < *w.high)
          sum += *w.left + *w.right;
      }
      sum *= tile.scale;
      S* const out = tile.grad_x + s * tile.grad_x_stride + c;
      if constexpr (std::is_same_v<S, BFloat16>)
        *out = to_bfloat16(sum);
      else
        *out = sum;
    }
}

template <class S, class A, int NV, bool kTail>
HWY_INLINE void grad_columns(
    const TalkGradTile<S, A>& tile,
    const Columns<A, NV, kTail>& columns) {
  constexpr int64_t L = kLanes<A>, pitch = NV * L;
  const Tag<A> d;
  A* const steps = tile.steps;
  for (int64_t i = 0; i < (tile.span + 1) * pitch; i += L)
    hn::Store(hn::Zero(d), d, steps + i);
  const auto add = [&](int64_t row, int v, Vec<A> value) HWY_ATTR {
    A* const p = steps + row * pitch + v * L;
    hn::Store(hn::Add(hn::Load(d, p), value), d, p);
  };
  for (int64_t t = 0; t < tile.rows; ++t) {
    const TalkWindows<A> w = tile.windows + t;
    const ClippedWindow rows(w, tile.span);
    if (rows.empty())
      continue;
    const auto left = hn::Set(d, *w.left), right = hn::Set(d, *w.right);
    const S* const g = tile.g + t * tile.g_stride;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto grad = columns.get(g, v);
      const auto right_part = hn::Mul(right, grad);
      const auto left_part = hn::Mul(left, grad);
      add(rows.high, v, hn::Sub(grad, right_part));
      add(rows.high_edge, v, right_part);
      add(rows.low, v, hn::Sub(left_part, grad));
      add(rows.low_edge, v, hn::Neg(left_part));
    }
  }
  Vec<A> sum[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    sum[v] = hn::Zero(d);
  const auto scale = hn::Set(d, tile.scale);
  for (int64_t r = tile.span; r > 0; --r) {
    S* const out = tile.grad_x + (r - 1) * tile.grad_x_stride;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      sum[v] = hn::Add(sum[v], hn::Load(d, steps + r * pitch + v * L));
      columns.put(hn::Mul(sum[v], scale), out, v);
    }
  }
  if (!all_finite<A, NV>(sum))
    spread_windows_singly(tile, kTail ? columns.tail : NV * L);
}

template <class S, class A>
HWY_INLINE void grad_lanes(const TalkGradTile<S, A>& tile) {
  const int64_t count = tile.channels;
  A* const steps = tile.steps;
  std::memset(
      steps,
      0,
      static_cast<size_t>((tile.span + 1) * kTalkLanes) * sizeof(A));
  bool finite = true;
  for (int64_t t = 0; t < tile.rows; ++t) {
    HWY_ALIGN A grad[kTalkLanes];
    for (int64_t c = 0; c < count; c += kLanes<A>)
      hn::StoreU(
          load_some<A>(tile.g + t * tile.g_stride + c, count - c),
          Tag<A>(),
          grad + c);
    for (int64_t c = 0; c < count; ++c) {
      const TalkWindows<A> w = tile.windows + (t * kTalkLanes + c);
      const ClippedWindow rows(w, tile.span);
      if (rows.empty())
        continue;
      const A g = grad[c], left = *w.left * g, right = *w.right * g;
      steps[rows.high * kTalkLanes + c] += g - right;
      steps[rows.high_edge * kTalkLanes + c] += right;
      steps[rows.low * kTalkLanes + c] += left - g;
      steps[rows.low_edge * kTalkLanes + c] -= left;
    }
  }
  const Tag<A> d;
  const auto scale = hn::Set(d, tile.scale);
  for (int64_t c = 0; c < count; c += kLanes<A>) {
    Vec<A> sum[1] = {hn::Zero(d)};
    for (int64_t r = tile.span; r > 0; --r) {
      sum[0] = hn::Add(sum[0], load(steps + r * kTalkLanes + c));
      store_some<A>(
          hn::Mul(sum[0], scale),
          tile.grad_x + (r - 1) * tile.grad_x_stride + c,
          count - c);
    }
    finite = finite && all_finite<A, 1>(sum);
  }
  if (!finite)
    spread_windows_singly(tile, count);
}

template <class S, class A>
HWY_INLINE void advance(TalkGradTile<S, A>& tile, int64_t channels) {
  tile.g += channels;
  tile.grad_x += channels;
  tile.channels -= channels;
}

template <class S, class A>
void talk_input_gradient(const TalkGradTile<S, A>& tile) {
  if (tile.lane_windows)
    return grad_lanes(tile);
  SEQCONV_FOR_COLUMNS(grad_columns);
}
#undef SEQCONV_FOR_COLUMNS

/// The input at the right border; with a NaN there may be none behind it.
template <class A>
HWY_INLINE int64_t right_edge(const TalkWindows<A>& w) {
  return *w.right > 0 ? *w.high : *w.high - 1;
}

/// <g, x> over all channels in one vector of partial sums.
template <class S, class A>
HWY_INLINE Vec<A> row_product(const S* g, const S* x, int64_t channels) {
  constexpr int64_t L = kLanes<A>;
  auto sum = hn::Zero(Tag<A>());
  int64_t c = 0;
  for (; c + L <= channels; c += L)
    sum = hn::MulAdd(load_wide(g + c), load_wide(x + c), sum);
  if (c < channels)
    sum = hn::MulAdd(
        load_some<A>(g + c, channels - c),
        load_some<A>(x + c, channels - c),
        sum);
  return sum;
}

template <class S, class A>
HWY_INLINE void edge_lanes(const TalkEdgeTile<S, A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < tile.channels; ++c) {
      const int64_t i = t * kTalkLanes + c;
      const TalkWindows<A> w = tile.windows + i;
      const auto product = [&](int64_t row) HWY_ATTR {
        return lane_sum<A>(row_product<S, A>(
            tile.g + t * tile.g_stride + c,
            tile.x + row * tile.x_stride + c,
            1));
      };
      if (*w.left != 0)
        tile.left[i] += product(*w.low_edge);
      if (*w.right != 0)
        tile.right[i] += product(right_edge(w));
    }
}

template <class S, class A>
void talk_edge_products(const TalkEdgeTile<S, A>& tile) {
  if (tile.lane_windows)
    return edge_lanes(tile);
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  // The sums over lanes of L rows are made together.
  for (int64_t first = 0; first < tile.rows; first += L) {
    const int64_t count = HWY_MIN(tile.rows - first, L);
    Vec<A> left[kLanes<A>], right[kLanes<A>];
    for (int64_t i = 0; i < L; ++i) {
      left[i] = right[i] = hn::Zero(d);
      if (i >= count)
        continue;
      const int64_t t = first + i;
      const TalkWindows<A> w = tile.windows + t;
      const S* const g = tile.g + t * tile.g_stride;
      if (*w.left != 0)
        left[i] = row_product<S, A>(
            g,
            tile.x + *w.low_edge * tile.x_stride,
            tile.channels);
      if (*w.right != 0)
        right[i] = row_product<S, A>(
            g,
            tile.x + right_edge(w) * tile.x_stride,
            tile.channels);
    }
    const auto add = [&](Vec<A>* sums, A* to) HWY_ATTR {
      const auto old = load_some<A>(to + first, count);
      store_some<A>(hn::Add(old, lane_sums<A>(sums)), to + first, count);
    };
    add(left, tile.left);
    add(right, tile.right);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
