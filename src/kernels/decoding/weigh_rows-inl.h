#if defined(SEQCONV_KERNELS_WEIGH_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_WEIGH_ROWS_INL_H
#undef SEQCONV_KERNELS_WEIGH_ROWS_INL_H
#else
#define SEQCONV_KERNELS_WEIGH_ROWS_INL_H
#endif

#include <type_traits>

#include "kernels/common/vectors-inl.h"
#include "kernels/decoding.h"

/// Weighted sums of rows, each in ascending order of the rows.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// NV vectors of channels from c on, or the first `n` lanes of one: bias, and
/// rows times the vectors tap(row, v).
template <int NV, class Tap>
HWY_INLINE void weigh_vectors(
    const float* bias, const SeenRows& x, int64_t c, int64_t n, float* y, const Tap& tap) {
  constexpr int64_t L = kLanes<float>;
  const auto get = [&](const float* p, int v) HWY_ATTR {
    return NV > 1 ? load_wide(p + c + v * L) : load_some<float>(p + c, n);
  };
  Vec<float> sums[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    sums[v] = bias == nullptr ? hn::Zero(Tag<float>()) : get(bias, v);
  for (int64_t j = 0; j < x.count; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sums[v] = hn::MulAdd(tap(j, v), get(x.rows[j], v), sums[v]);
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    store_some<float>(sums[v], y + c + v * L, n - v * L);
}

/// Calls part(c, n, number of vectors) on [first, end), four vectors at a time
/// as long as there are as many.
template <class Part>
HWY_INLINE void for_vectors(int64_t first, int64_t end, const Part& part) {
  constexpr int64_t L = kLanes<float>;
  int64_t c = first;
  for (; c + 4 * L <= end; c += 4 * L)
    part(c, 4 * L, std::integral_constant<int, 4>());
  for (; c < end; c += L)
    part(c, end - c, std::integral_constant<int, 1>());
}

/// Heads of fewer channels than a vector has: each lane has the taps of its own
/// head.
HWY_INLINE void weigh_narrow_heads(const WeightedRows& args, const SeenRows& x, float* y) {
  constexpr int64_t L = kLanes<float>;
  const Tag<float> d;
  const hn::RebindToSigned<Tag<float>> di;
  const int64_t R = args.channels / args.heads, C = args.channels;
  HWY_ALIGN int32_t places[L];
  int64_t left = R;   // channels of the head at hand
  int64_t place = 0;  // of its taps
  for (int64_t c = 0; c < C; c += L) {
    const int64_t n = HWY_MIN(L, C - c);
    for (int64_t i = 0; i < L; ++i) {
      places[i] = static_cast<int32_t>(place);
      if (--left == 0 && c + i + 1 < C) {
        left = R;
        place += args.tap_stride;
      }
    }
    const auto at = hn::Load(di, places);
    auto sum = args.bias == nullptr ? hn::Zero(d) : load_some<float>(args.bias + c, n);
    for (int64_t j = 0; j < x.count; ++j)
      sum = hn::MulAdd(
          hn::GatherIndex(d, args.taps + j, at), load_some<float>(x.rows[j] + c, n), sum);
    store_some<float>(sum, y + c, n);
  }
}

inline void weigh_rows(const WeightedRows& args, const SeenRows& x, float* y) {
  const int64_t R = args.channels / args.heads;
  if (R < kLanes<float> && args.heads > 1)
    return weigh_narrow_heads(args, x, y);
  for (int64_t h = 0; h < args.heads; ++h) {
    const float* const taps = args.taps + h * args.tap_stride;
    for_vectors(h * R, (h + 1) * R, [&](int64_t c, int64_t n, auto vectors) HWY_ATTR {
      weigh_vectors<vectors>(args.bias, x, c, n, y, [&](int64_t j, int) HWY_ATTR {
        return hn::Set(Tag<float>(), taps[j]);
      });
    });
  }
}

inline void weigh_by_channel(const WeightedChannels& args, const SeenRows& x, float* y) {
  for_vectors(0, args.channels, [&](int64_t c, int64_t n, auto vectors) HWY_ATTR {
    weigh_vectors<vectors>(args.bias, x, c, n, y, [&](int64_t j, int v) HWY_ATTR {
      const float* const taps = args.taps + j * args.channels + c;
      return vectors > 1 ? load_wide(taps + v * kLanes<float>) : load_some<float>(taps, n);
    });
  });
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
