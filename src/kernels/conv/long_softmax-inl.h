#if defined(SEQCONV_KERNELS_LONG_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LONG_SOFTMAX_INL_H
#undef SEQCONV_KERNELS_LONG_SOFTMAX_INL_H
#else
#define SEQCONV_KERNELS_LONG_SOFTMAX_INL_H
#endif

#include "kernels/common/exp-inl.h"
#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Softmax of segments of any length, and sums over groups of segments.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Vectors whose sums are made together: one division serves them all.
template <class A>
inline constexpr int kSumGroup = sizeof(A) == 4 && kLanes<A> >= 4 ? 4 : 1;

#if HWY_TARGET != HWY_SCALAR
/// The sums of the segments of kPitch lanes in four vectors, those of vector i
/// in lane i of every block of four lanes of the segment.
template <int kPitch, class A>
HWY_INLINE Vec<A> add_segments(const Vec<A> (&v)[4]) {
  auto sums = add_neighbours<8, A>(
      add_neighbours<4, A>(v[0], v[1]),
      add_neighbours<4, A>(v[2], v[3]));
  if constexpr (kLanes<A> >= 8 && kPitch >= 8)
    sums = hn::Add(sums, hn::SwapAdjacentBlocks(sums));
  if constexpr (kLanes<A> >= 16 && kPitch >= 16)
    sums = hn::Add(sums, hn::ConcatLowerUpper(Tag<A>(), sums, sums));
  return sums;
}

/// Lane i of every block of four lanes, in all lanes of the block of out[i].
template <class A>
HWY_INLINE void spread_lanes(Vec<A> v, Vec<A> (&out)[4]) {
  out[0] = hn::Broadcast<0>(v);
  out[1] = hn::Broadcast<1>(v);
  out[2] = hn::Broadcast<2>(v);
  out[3] = hn::Broadcast<3>(v);
}
#endif

/// Softmax of segments of any number of vectors, a group of segments at a time
/// as in SoftmaxGroups.
template <class L, class A>
class LongSoftmaxGroups {
 public:
  static constexpr int kGroup = kSumGroup<A>;  ///< segments

  HWY_INLINE LongSoftmaxGroups(int64_t kernel_size, int64_t stride)
      : kernel_size_(kernel_size),
        stride_(stride),
        pitch_(tap_pitch(kernel_size)),
        used_(hn::FirstN(Tag<A>(), static_cast<size_t>(kernel_size % N))) {}

  /// Exponentials of `count` segments, a group or fewer, to w.
  HWY_INLINE void add(const L* logits, int64_t count, A* w) {
    Vec<A> sums[kGroup];
    for (int g = 0; g < kGroup; ++g) {
      const int64_t n = HWY_MIN(int64_t{g}, count - 1);
      sums[g] = exps(logits + n * stride_, w + n * pitch_);
    }
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
    divide(scale);
    for (int64_t g = 0; g < count_; ++g) {
      A* const w = w_ + g * pitch_;
      for (int64_t j = 0; j < kernel_size_; j += N)
        store_some<A>(
            hn::Mul(load_some<A>(w + j, pitch_ - j), scale[g]),
            w + j,
            pitch_ - j);
    }
  }

  /// Whether all logits were moderate ones.
  HWY_INLINE bool good() const {
    return bound_.holds();
  }

 private:
  static constexpr int64_t N = kLanes<A>;
  /// Vectors whose exponentials are made side by side.
  static constexpr int kTogether = kRegisters / 8;

  /// Exponentials of a segment, zeros behind them, and their sum lane by lane.
  HWY_INLINE Vec<A> exps(const L* logits, A* w) {
    const Tag<A> d;
    const int64_t K = kernel_size_;
    auto sum = hn::Zero(d);
    int64_t j = 0;
    for (; j + kTogether * N <= K; j += kTogether * N)
      add_exps<kTogether>(logits + j, w + j, sum);
    for (; j + N <= K; j += N)
      add_exps<1>(logits + j, w + j, sum);
    if (j < K) {
      Vec<A> e[1] = {load_first(d, logits + j, K - j)};
      bound_.add(e);
      exps_of_moderate<A>(e);
      e[0] = hn::IfThenElseZero(used_, e[0]);
      store_some<A>(e[0], w + j, pitch_ - j);
      sum = hn::Add(sum, e[0]);
      j += N;
    }
    for (; j < pitch_; j += N)
      store_some<A>(hn::Zero(d), w + j, pitch_ - j);
    return sum;
  }

  /// Those of NV whole vectors.
  template <int NV>
  HWY_INLINE void add_exps(const L* logits, A* w, Vec<A>& sum) {
    Vec<A> e[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      e[v] = load_wide(logits + v * N);
    bound_.add(e);
    exps_of_moderate<A>(e);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      hn::StoreU(e[v], Tag<A>(), w + v * N);
      sum = hn::Add(sum, e[v]);
    }
  }

  /// One over the sums of the last group, in all lanes.
  HWY_INLINE void divide(Vec<A> (&scale)[kGroup]) const {
    const Tag<A> d;
    const auto one = hn::Set(d, A(1));
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kGroup == 4)
      return spread_lanes<A>(
          hn::Div(one, add_segments<static_cast<int>(N), A>(sums_)),
          scale);
#endif
    for (int g = 0; g < kGroup; ++g)
      scale[g] = hn::Div(one, hn::SumOfLanes(d, sums_[g]));
  }

  const int64_t kernel_size_, stride_, pitch_;
  const hn::Mask<Tag<A>> used_;  ///< lanes of the last vector, if it is a part
  ModerateBound<A> bound_;
  // The last group: sums of its segments, and where its exponentials are.
  Vec<A> sums_[kGroup];
  A* w_ = nullptr;
  int64_t count_ = 0;
};

/// Softmax of segments of any length.
template <class L, class A>
HWY_INLINE bool softmax_long_segments(
    const TapTile<L, A>& tile,
    int64_t stride) {
  using Groups = LongSoftmaxGroups<L, A>;
  const int64_t pitch = tap_pitch(tile.kernel_size);
  Groups groups(tile.kernel_size, stride);
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t h = 0; h < tile.heads; h += Groups::kGroup)
      groups.add(
          tile.logits + t * tile.logit_stride + h * stride,
          HWY_MIN(tile.heads - h, int64_t{Groups::kGroup}),
          tile.w + (t * tile.heads + h) * pitch);
  groups.finish();
  return groups.good();
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
