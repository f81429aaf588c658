#if defined(SEQCONV_KERNELS_SEGMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_SEGMENTS_INL_H
#undef SEQCONV_KERNELS_SEGMENTS_INL_H
#else
#define SEQCONV_KERNELS_SEGMENTS_INL_H
#endif

#include <type_traits>

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Taps in segments of tap_pitch(K) that lie side by side, one by one.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// The first N lanes of a vector, a whole, half or quarter of it.
template <int N, class A>
HWY_INLINE Vec<A> load_lanes(const A* p) {
#if HWY_TARGET != HWY_SCALAR
  using Half = hn::Half<Tag<A>>;
  using Quarter = hn::Half<Half>;
  if constexpr (2 * N == kLanes<A>)
    return hn::ZeroExtendVector(Tag<A>(), hn::LoadU(Half(), p));
  if constexpr (4 * N == kLanes<A>)
    return hn::ZeroExtendVector(
        Tag<A>(),
        hn::ZeroExtendVector(Half(), hn::LoadU(Quarter(), p)));
#endif
  return load(p);
}
template <int N, class A>
HWY_INLINE void store_lanes(Vec<A> v, A* p) {
#if HWY_TARGET != HWY_SCALAR
  using Half = hn::Half<Tag<A>>;
  using Quarter = hn::Half<Half>;
  if constexpr (2 * N == kLanes<A>)
    return hn::StoreU(hn::LowerHalf(Half(), v), Half(), p);
  if constexpr (4 * N == kLanes<A>)
    return hn::StoreU(
        hn::LowerHalf(Quarter(), hn::LowerHalf(Half(), v)),
        Quarter(),
        p);
#endif
  hn::StoreU(v, Tag<A>(), p);
}

/// The K taps of a segment, N at a time: from(j) has those from tap j on, zero
/// in all other lanes. Not with masks: a read would wait for masked stores
/// beside it.
template <class T, int N>
class Segment {
  using A = std::remove_const_t<T>;

 public:
  HWY_INLINE Segment(T* taps, int64_t kernel_size)
      : taps_(taps), kernel_size_(kernel_size) {}

  HWY_INLINE Vec<A> from(int64_t j) const {
    return without_others(load_lanes<N, A>(taps_ + j), j);
  }
  /// Calls each(j) for all j that from() needs to see every tap.
  template <class Each>
  HWY_INLINE void for_each(const Each& each) const {
    for (int64_t j = 0; j < kernel_size_; j += N)
      each(j);
  }
  /// Writes what from(j) would read; zeros beyond K.
  HWY_INLINE void store(Vec<A> v, int64_t j) const {
    store_lanes<N>(without_others(v, j), taps_ + j);
  }
  /// v where there are taps from j on, elsewhere zero.
  HWY_INLINE Vec<A> without_others(Vec<A> v, int64_t j) const {
    return kernel_size_ - j >= N && N >= kLanes<A>
        ? v
        : hn::IfThenElseZero(used(j), v);
  }
  HWY_INLINE hn::Mask<Tag<A>> used(int64_t j) const {
    const int64_t lanes = HWY_MIN(kernel_size_ - j, int64_t{kLanes<A>});
    return hn::FirstN(
        Tag<A>(),
        static_cast<size_t>(HWY_MAX(lanes, int64_t{0})));
  }

 private:
  T* const taps_;
  const int64_t kernel_size_;
};

/// Calls work.operator()<N>() with as many lanes as segments of K taps take at
/// a time: those of a vector, or all of a shorter segment.
template <class A, class Work>
HWY_INLINE void with_lanes(int64_t kernel_size, const Work& work) {
  const int64_t pitch = tap_pitch(kernel_size);
  if (pitch == 4)
    work.template operator()<HWY_MIN(4, kLanes<A>)>();
  else if (pitch == 8)
    work.template operator()<HWY_MIN(8, kLanes<A>)>();
  else
    work.template operator()<kLanes<A>>();
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
