#if defined(SEQCONV_KERNELS_DROPCONNECT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_DROPCONNECT_INL_H
#undef SEQCONV_KERNELS_DROPCONNECT_INL_H
#else
#define SEQCONV_KERNELS_DROPCONNECT_INL_H
#endif

#include "kernels/conv/segments-inl.h"

/// DropConnect on segments of tap_pitch(K).
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// N lanes of a segment, and the words of its taps.
template <int N, class A>
HWY_INLINE void
drop_lanes(const DropTile<A>& tile, int64_t at, const uint32_t* words) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(A) == sizeof(uint32_t)) {
    const hn::CappedTag<A, N> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto dropped = hn::RebindMask(
        d,
        hn::Lt(hn::LoadU(du, words), hn::Set(du, tile.threshold)));
    const auto factor = hn::IfThenZeroElse(dropped, hn::Set(d, tile.scale));
    hn::StoreU(hn::Mul(hn::LoadU(d, tile.taps + at), factor), d, tile.out + at);
    if (tile.factors != nullptr)
      hn::StoreU(factor, d, tile.factors + at);
    return;
  }
#endif
  for (int i = 0; i < N; ++i) {
    const A factor = words[i] < tile.threshold ? A(0) : tile.scale;
    tile.out[at + i] = tile.taps[at + i] * factor;
    if (tile.factors != nullptr)
      tile.factors[at + i] = factor;
  }
}

template <class A>
void drop_tile(const DropTile<A>& tile) {
  const int64_t K = tile.kernel_size, pitch = tap_pitch(K);
  with_lanes<A>(K, [&]<int N>() HWY_ATTR {
    for (int64_t t = 0; t < tile.rows; ++t)
      for (int64_t n = 0; n < tile.segments; ++n)
        for (int64_t j = 0; j < pitch; j += N)
          drop_lanes<N>(
              tile,
              (t * tile.segments + n) * pitch + j,
              tile.words + t * tile.words_stride + n * K + j);
  });
}

template <class A>
void multiply(A* a, const A* b, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes<A>)
    store_some<A>(
        hn::Mul(load_some<A>(a + i, count - i), load_some<A>(b + i, count - i)),
        a + i,
        count - i);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
