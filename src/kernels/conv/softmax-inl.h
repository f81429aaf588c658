#if defined(SEQCONV_KERNELS_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_SOFTMAX_INL_H
#undef SEQCONV_KERNELS_SOFTMAX_INL_H
#else
#define SEQCONV_KERNELS_SOFTMAX_INL_H
#endif

#include <utility>

#include "kernels/common/exp-inl.h"
#include "kernels/common/tiles.h"
#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/conv/long_softmax-inl.h"

/// From logits to taps: softmax of segments of K.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// N lanes: segments of K logits, kPitch lanes each, the last of `count`
/// again and again.
template <int N, int kPitch, class L>
HWY_INLINE auto
load_segments(const L* logits, int64_t stride, int64_t K, int64_t count) {
  if constexpr (N <= kPitch) {
    return load_first(hn::CappedTag<float, N>(), logits, K);
  } else {
    constexpr int64_t kHalf = N / kPitch / 2;
    const int64_t below = HWY_MIN(count - 1, kHalf);
    return hn::Combine(
        hn::CappedTag<float, N>(),
        load_segments<N / 2, kPitch>(
            logits + below * stride,
            stride,
            K,
            HWY_MAX(count - kHalf, int64_t{1})),
        load_segments<N / 2, kPitch>(logits, stride, K, count));
  }
}

/// Whether the last vector of a segment holds some of its taps.
template <class A>
constexpr bool reaches_last_vector(int64_t kernel_size) {
  const int64_t pitch = tap_pitch(kernel_size);
  return pitch <= kLanes<A> || pitch - kLanes<A> < kernel_size;
}

/// The lanes that hold taps, of vectors of segments of kPitch lanes or of the
/// last vector of one.
template <int kPitch, class A>
HWY_INLINE hn::Mask<Tag<A>> lanes_of_taps(int64_t kernel_size) {
  constexpr int N = kLanes<A>;
  const Tag<A> d;
  HWY_ALIGN A tap[N];
  for (int i = 0; i < N; ++i)
    tap[i] = static_cast<A>(i % kPitch + HWY_MAX(0, kPitch - N));
  return hn::Lt(hn::Load(d, tap), hn::Set(d, static_cast<A>(kernel_size)));
}

/// Softmax of segments of kPitch lanes, a group of vectors at a time. What the
/// exponentials of a group are divided by comes out of a long chain of sums:
/// that is done after the exponentials of the next group, which do not wait.
template <int kPitch, class L, class A>
class SoftmaxGroups {
 public:
  /// Segments of a group.
  static constexpr int64_t size() { return kGroup * kSegments; }

  HWY_INLINE SoftmaxGroups(int64_t kernel_size, int64_t stride)
      : kernel_size_(kernel_size),
        stride_(stride),
        used_(lanes_of_taps<kPitch, A>(kernel_size)) {}

  /// Exponentials of `count` segments, which go `stride` apart, to w. kWhole:
  /// they are a group; else there are fewer.
  template <bool kWhole>
  HWY_INLINE void add(const L* logits, int64_t count, A* w) {
    Vec<A> sums[kGroup];
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; g += kTogether)
      exps<kWhole>(logits, g, count, w, sums + g);
    finish();
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g)
      sums_[g] = sums[g];
    w_ = w;
    count_ = count;
  }

  /// Divides the exponentials of the last group.
  HWY_INLINE void finish() {
    if (w_ == nullptr)
      return;
    Vec<A> scale[kGroup];
    const auto sums = add_segments<kPitch, A>(sums_);
    spread_lanes<A>(hn::Div(hn::Set(Tag<A>(), A(1)), sums), scale);
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        A* const w = w_ + (g * NV + v) * N;
        const int64_t lanes = lanes_of(g, count_);
        if (HWY_LIKELY(lanes >= N))
          hn::StoreU(
              hn::Mul(kKeeps ? sums_[g] : load(w), scale[g]),
              Tag<A>(),
              w);
        else if (lanes > 0)
          store_some<A>(
              hn::Mul(kKeeps ? sums_[g] : load_some<A>(w, lanes), scale[g]),
              w,
              lanes);
      }
  }

  /// Whether all logits were moderate ones.
  HWY_INLINE bool good() const {
    return bound_.holds();
  }

 private:
  static constexpr int kGroup = kSumGroup<A>, N = kLanes<A>;
  static constexpr int NV = HWY_MAX(1, kPitch / N);  ///< vectors of a segment
  static constexpr int64_t kSegments = HWY_MAX(1, N / kPitch);  ///< of a vector
  /// Exponentials wait in registers: they are their own sums over vectors.
  /// Stores take the place of products.
  static constexpr bool kKeeps = NV == 1;
  /// Vectors of a group, or segments of many, whose exponentials are made side
  /// by side.
  static constexpr int kTogether = HWY_MAX(1, kRegisters / 8 / NV);

  /// Lanes of the vectors number g that hold some of `count` segments.
  static constexpr int64_t lanes_of(int g, int64_t count) {
    return (count - g * kSegments) * HWY_MIN(kPitch, N);
  }

  /// Exponentials of vectors g, ... and their sums.
  template <bool kWhole>
  HWY_INLINE void
  exps(const L* logits, int g, int64_t count, A* w, Vec<A>* sums) {
    Vec<A> e[kTogether * NV];
#pragma GCC unroll 4
    for (int i = 0; i < kTogether; ++i) {
      const int64_t first = (g + i) * kSegments;
      const int64_t n = kWhole ? first : HWY_MIN(first, count - 1);
      load_segment(
          logits + n * stride_,
          kWhole ? kSegments : count - n,
          e + i * NV);
    }
    bound_.add(e);
    exps_of_moderate<A>(e);
#pragma GCC unroll 4
    for (int i = 0; i < kTogether; ++i) {
      Vec<A>* const of = e + i * NV;
      of[NV - 1] = hn::IfThenElseZero(used_, of[NV - 1]);
      sums[i] = of[0];
#pragma GCC unroll 4
      for (int v = 1; v < NV; ++v)
        sums[i] = hn::Add(sums[i], of[v]);
      const int64_t lanes = kWhole ? N : lanes_of(g + i, count);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        if (!kKeeps && lanes > 0)
          store_some<A>(of[v], w + ((g + i) * NV + v) * N, lanes);
    }
  }

  /// Some of `count` segments, or one of NV vectors.
  HWY_INLINE void load_segment(const L* logits, int64_t count, Vec<A>* x)
      const {
#pragma GCC unroll 4
    for (int v = 0; v < NV - 1; ++v)
      x[v] = load_wide(logits + v * N);
    constexpr int64_t kWhole = (NV - 1) * N;
    if constexpr (NV > 1)
      x[NV - 1] = load_first(Tag<A>(), logits + kWhole, kernel_size_ - kWhole);
    else
      x[0] = load_segments<N, kPitch>(logits, stride_, kernel_size_, count);
  }

  const int64_t kernel_size_, stride_;
  const hn::Mask<Tag<A>> used_;
  ModerateBound<A> bound_;
  // The last group: sums of its vectors, and where its exponentials are.
  Vec<A> sums_[kGroup];
  A* w_ = nullptr;
  int64_t count_ = 0;
};

/// Softmax of segments of kPitch lanes.
template <int kPitch, class L, class A>
HWY_INLINE bool softmax_segments(const TapTile<L, A>& tile, int64_t stride) {
  using Groups = SoftmaxGroups<kPitch, L, A>;
  constexpr int64_t kStep = Groups::size();
  const int64_t H = tile.heads;
  Groups groups(tile.kernel_size, stride);
  PrefetchRows* const next_rows = tile.next_rows;
  for (int64_t t = 0; t < tile.rows; ++t) {
    const L* const logits = tile.logits + t * tile.logit_stride;
    A* const w = tile.w + t * H * kPitch;
    int64_t h = 0;
    for (; h + kStep <= H; h += kStep) {
      groups.template add<true>(logits + h * stride, kStep, w + h * kPitch);
      if (HWY_UNLIKELY(next_rows != nullptr))
        next_rows->template next_row<kLinesOfRow<A>, OwnCache::kSecond>();
    }
    if (h < H)
      groups.template add<false>(logits + h * stride, H - h, w + h * kPitch);
  }
  groups.finish();
  return groups.good();
}
#endif

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
bool softmax_tile(TapTile<L, A> tile) {
  const int64_t stride = join_rows(tile, tile.logit_stride);
#if HWY_TARGET != HWY_SCALAR
  const int64_t pitch = tap_pitch(tile.kernel_size);
  if constexpr (kSumGroup<A> == 4) {
    if (!reaches_last_vector<A>(tile.kernel_size))
      return softmax_long_segments(tile, stride);
    if (pitch == 4)
      return softmax_segments<4>(tile, stride);
    if (pitch == 8)
      return softmax_segments<8>(tile, stride);
    if (pitch == 16)
      return softmax_segments<16>(tile, stride);
    if (pitch == 32 && kLanes<A> >= 8)
      return softmax_segments<32>(tile, stride);
    if (pitch == 64 && kLanes<A> >= 16)
      return softmax_segments<64>(tile, stride);
  }
#endif
  return softmax_long_segments(tile, stride);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
