#if defined(SEQCONV_KERNELS_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_SOFTMAX_INL_H
#undef SEQCONV_KERNELS_SOFTMAX_INL_H
#else
#define SEQCONV_KERNELS_SOFTMAX_INL_H
#endif

#include <limits>
#include <utility>

#include "kernels/common/exp-inl.h"
#include "kernels/conv/conv_kernels.h"

/// From logits to taps, and from gradients of taps to those of logits: softmax
/// of segments of K, a group of vectors at a time, so that none of them waits
/// for sums over its lanes alone.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Vectors of a group: of segments that lie in one vector or begin with it.
inline constexpr int kSegmentGroup = 4;
/// Whether the lanes of a group are joined at once.
template <class A>
inline constexpr bool kJoinsGroups = sizeof(A) == 4 && kLanes<A> >= 4;

/// What the lanes of a segment are joined by: their sum or their maximum.
template <bool kSum>
struct Join {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return kSum ? hn::Add(a, b) : hn::Max(a, b);
  }
};

/// v[i] -> finish(what the kPitch lanes of every segment in v[i] make together)
/// in all lanes of the segment.
template <int kPitch, bool kSum, class A, class Finish>
HWY_INLINE void join_lanes(Vec<A> (&v)[kSegmentGroup], const Finish& finish) {
  const Tag<A> d;
  if constexpr (!kJoinsGroups<A>) {
#pragma GCC unroll 4
    for (int g = 0; g < kSegmentGroup; ++g)
      v[g] = finish(kSum ? hn::SumOfLanes(d, v[g]) : hn::MaxOfLanes(d, v[g]));
#if HWY_TARGET != HWY_SCALAR
  } else {
    const Join<kSum> join;
    // Lane i of every block of four: of v[i].
    auto all = join_neighbours<8, A>(
        join_neighbours<4, A>(v[0], v[1], join), join_neighbours<4, A>(v[2], v[3], join), join);
    if constexpr (kPitch >= 8)
      all = join(all, hn::SwapAdjacentBlocks(all));
    if constexpr (kPitch >= 16)
      all = join(all, hn::ConcatLowerUpper(d, all, all));
    all = finish(all);
    v[0] = hn::Broadcast<0>(all);
    v[1] = hn::Broadcast<1>(all);
    v[2] = hn::Broadcast<2>(all);
    v[3] = hn::Broadcast<3>(all);
#endif
  }
}

#if HWY_TARGET != HWY_SCALAR
/// N lanes: segments of K numbers, kPitch lanes each, the last of `count`
/// again and again.
template <int N, int kPitch, class L>
HWY_INLINE auto load_segments(const L* p, int64_t stride, int64_t K, int64_t count) {
  if constexpr (N <= kPitch) {
    return load_first(hn::CappedTag<float, N>(), p, K);
  } else {
    constexpr int64_t kHalf = N / kPitch / 2;
    const int64_t below = HWY_MIN(count - 1, kHalf);
    return hn::Combine(
        hn::CappedTag<float, N>(),
        load_segments<N / 2, kPitch>(
            p + below * stride, stride, K, HWY_MAX(count - kHalf, int64_t{1})),
        load_segments<N / 2, kPitch>(p, stride, K, count));
  }
}
#endif

/// Stores the first K lanes of each of `count` segments of kPitch lanes.
template <int kPitch, class A, class L>
HWY_INLINE void store_segments(Vec<A> v, L* p, int64_t stride, int64_t K, int64_t count) {
  HWY_ALIGN L lanes[kLanes<A>];
  store_narrow(v, lanes);
  for (int64_t n = 0; n < count; ++n) {
    if constexpr (kMasks<L>) {
      using T = std::conditional_t<sizeof(L) == 2, uint16_t, A>;
      const hn::CappedTag<T, kPitch> d;
      const auto part = hn::LoadU(d, reinterpret_cast<const T*>(lanes + n * kPitch));
      store_masked(part, d, reinterpret_cast<T*>(p + n * stride), K);
    } else {
      for (int64_t j = 0; j < K; ++j)
        p[n * stride + j] = lanes[n * kPitch + j];
    }
  }
}

/// Segments of K taps, kPitch lanes of a vector each, or whole vectors and a
/// last one if these are all its lanes: kWhole of them or, if that is -1, any
/// number.
template <int kPitch, class A, int kWhole = 0>
struct Segments {
  static constexpr int N = kLanes<A>, kGroup = kSegmentGroup;
  static constexpr int64_t kOfVector = N / kPitch;
  static constexpr int64_t kOfGroup = kGroup * kOfVector;
  /// Vectors whose exponentials are made side by side.
  static constexpr int kTogether = HWY_MIN(kGroup, HWY_MAX(1, kRegisters / 8));

  int64_t K;
  int64_t pitch;          ///< of taps
  hn::Mask<Tag<A>> used;  ///< lanes of the last one that hold taps

  HWY_INLINE explicit Segments(int64_t kernel_size) : K(kernel_size), pitch(tap_pitch(K)) {
    HWY_ALIGN A place[N];
    for (int i = 0; i < N; ++i)
      place[i] = static_cast<A>(i % kPitch);
    used = hn::Lt(hn::Load(Tag<A>(), place), hn::Set(Tag<A>(), static_cast<A>(K - whole() * N)));
  }

  /// Vectors of a segment before the last one.
  HWY_INLINE int64_t whole() const { return kWhole >= 0 ? kWhole : (K - 1) / N; }
  /// The first segment of vector g of a group of `count`, or the last one.
  static HWY_INLINE int64_t first(int g, int64_t count) {
    return HWY_MIN(g * kOfVector, count - 1);
  }

  /// Vector v of segments at p, of which `count` exist.
  template <bool kLast, class L>
  HWY_INLINE Vec<A> load_logits(const L* p, int64_t v, int64_t stride, int64_t count) const {
    if constexpr (!kLast)
      return load_wide(p + v * N);
    else if constexpr (kPitch == N)
      return load_some<A>(p + v * N, K - v * N);
#if HWY_TARGET != HWY_SCALAR
    else
      return load_segments<N, kPitch>(p, stride, K, count);
#endif
  }

  /// Softmax of `count` segments of logits, at most a group, `stride` apart, to
  /// taps w, zeros up to a whole vector. The maximum is taken off, so that
  /// the largest logit counts whatever it is.
  template <class L>
  HWY_INLINE void softmax(const L* logits, int64_t stride, int64_t count, A* w) const {
    const Tag<A> d;
    Vec<A> max[kGroup], sum[kGroup], e[kGroup];
    const auto vector = [&]<bool kLast>(int g, int64_t v) HWY_ATTR {
      const int64_t n = first(g, count);
      return load_logits<kLast>(logits + n * stride, v, stride, count - n);
    };
    const auto lowest = hn::Set(d, -std::numeric_limits<A>::infinity());
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) {
      e[g] = vector.template operator()<true>(g, whole());
      max[g] = hn::IfThenElse(used, e[g], lowest);
      sum[g] = hn::Zero(d);
    }
    for (int64_t v = 0; v < whole(); ++v)
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        max[g] = hn::Max(max[g], vector.template operator()<false>(g, v));
    join_lanes<kPitch, false, A>(max, [](Vec<A> v) HWY_ATTR { return v; });
    for (int64_t v = 0; v < whole(); ++v) {
      Vec<A> of[kGroup];
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        of[g] = vector.template operator()<false>(g, v);
      add_exps<false>(of, max, sum);
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        hn::StoreU(of[g], d, w + first(g, count) * pitch + v * N);
    }
    add_exps<true>(e, max, sum);
    const auto inverse = [](Vec<A> v) HWY_ATTR { return hn::Div(hn::Set(Tag<A>(), A(1)), v); };
    join_lanes<kPitch, true, A>(sum, inverse);
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) {
      A* const to = w + first(g, count) * pitch;
      const int64_t left = count - g * kOfVector;
      if (left <= 0)
        break;
      for (int64_t v = 0; v < whole(); ++v)
        hn::StoreU(hn::Mul(load(to + v * N), sum[g]), d, to + v * N);
      store_some<A>(
          hn::Mul(e[g], sum[g]),
          to + whole() * N,
          kPitch == N ? pitch - whole() * N : left * kPitch);
    }
  }

  /// out = w (grad - <w, grad>) of `count` segments, at most a group, which
  /// go `stride` apart in `out`. Gradients beyond K may be anything.
  template <class L>
  HWY_INLINE void backward(const A* w, const A* grad, int64_t count, L* out, int64_t stride) const {
    Vec<A> mean[kGroup];
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) {
      const int64_t at = first(g, count) * pitch, last = at + whole() * N;
      mean[g] = hn::IfThenElseZero(used, hn::Mul(load(w + last), load(grad + last)));
      for (int64_t v = 0; v < whole(); ++v)
        mean[g] = hn::MulAdd(load(w + at + v * N), load(grad + at + v * N), mean[g]);
    }
    join_lanes<kPitch, true, A>(mean, [](Vec<A> v) HWY_ATTR { return v; });
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) {
      const int64_t left = count - g * kOfVector;
      if (left <= 0)
        break;
      const int64_t at = g * kOfVector * pitch;
      L* const to = out + g * kOfVector * stride;
      const auto gradient = [&](int64_t v) HWY_ATTR {
        const int64_t i = at + v * N;
        return hn::Mul(load(w + i), hn::Sub(load(grad + i), mean[g]));
      };
      for (int64_t v = 0; v < whole(); ++v)
        store_narrow(gradient(v), to + v * N);
      if constexpr (kPitch == N)
        store_some<A>(gradient(whole()), to + whole() * N, K - whole() * N);
      else
        store_segments<kPitch, A>(gradient(0), to, stride, K, HWY_MIN(left, kOfVector));
    }
  }

 private:
  /// x -> e^(x - max), added to sum.
  template <bool kLast>
  HWY_INLINE void add_exps(
      Vec<A> (&x)[kGroup], const Vec<A> (&max)[kGroup], Vec<A> (&sum)[kGroup]) const {
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; g += kTogether) {
      Vec<A> e[kTogether];
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i)
        e[i] = hn::Sub(x[g + i], max[g + i]);
      exps_of_negative<A>(e);
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        x[g + i] = kLast ? hn::IfThenElseZero(used, e[i]) : e[i];
        sum[g + i] = hn::Add(sum[g + i], x[g + i]);
      }
    }
  }
};

/// Calls work(segments) with how segments of K lie in vectors.
template <class A, class Work>
HWY_INLINE void with_segments(int64_t K, const Work& work) {
  constexpr int N = kLanes<A>;
  if constexpr (kJoinsGroups<A> && N > 4)
    if (K <= 4)
      return work(Segments<4, A>(K));
  if constexpr (kJoinsGroups<A> && N > 8)
    if (K <= 8)
      return work(Segments<8, A>(K));
  switch ((K - 1) / N) {
    case 0:
      return work(Segments<N, A>(K));
    case 1:
      return work(Segments<N, A, 1>(K));
    case 3:
      return work(Segments<N, A, 3>(K));
    default:
      work(Segments<N, A, -1>(K));
  }
}

/// Segments in rows, `stride` apart, as one row if they follow each other
/// evenly; the elements from one to the next.
template <class Tile>
HWY_INLINE int64_t join_rows(Tile& tile, int64_t stride) {
  const bool single = tile.heads == 1;
  if (single || stride == tile.heads * tile.kernel_size)
    tile.heads *= std::exchange(tile.rows, 1);
  return single ? stride : tile.kernel_size;
}

template <class L, class A>
void softmax(TapTile<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.logit_stride);
  with_segments<A>(tile.kernel_size, [&](const auto& segments) HWY_ATTR {
    constexpr int64_t kGroup = std::decay_t<decltype(segments)>::kOfGroup;
    for (int64_t t = 0; t < tile.rows; ++t)
      for (int64_t h = 0; h < tile.heads; h += kGroup)
        segments.softmax(
            tile.logits + t * tile.logit_stride + h * stride,
            stride,
            HWY_MIN(kGroup, tile.heads - h),
            tile.w + (t * tile.heads + h) * segments.pitch);
  });
}

template <class L, class A>
void softmax_backward(TapGradient<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.out_stride);
  with_segments<A>(tile.kernel_size, [&](const auto& segments) HWY_ATTR {
    constexpr int64_t kGroup = std::decay_t<decltype(segments)>::kOfGroup;
    for (int64_t t = 0; t < tile.rows; ++t)
      for (int64_t h = 0; h < tile.heads; h += kGroup) {
        const int64_t at = (t * tile.heads + h) * segments.pitch;
        segments.backward(
            tile.w + at,
            tile.grad + at,
            HWY_MIN(kGroup, tile.heads - h),
            tile.out + t * tile.out_stride + h * stride,
            stride);
      }
  });
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
