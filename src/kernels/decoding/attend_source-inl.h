#if defined(SEQCONV_KERNELS_ATTEND_SOURCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ATTEND_SOURCE_INL_H
#undef SEQCONV_KERNELS_ATTEND_SOURCE_INL_H
#else
#define SEQCONV_KERNELS_ATTEND_SOURCE_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/decoding/decoding-inl.h"

/// Attention of a few rows at a time to one source. Sums are in registers, each
/// in ascending order of channels or positions: a row has the same bits alone.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Rows whose sums fit into registers.
inline constexpr int kSourceRows = kRegisters == 32 || HWY_TARGET == HWY_AVX2 ? 4 : 2;
/// Vectors of positions, and of channels, that are summed at a time.
inline constexpr int kPositionVectors = kSourceStep / kLanes<float>;
inline constexpr int kChannelVectors = 2;

/// A head of some rows: queries and y at its first channel.
struct HeadRows {
  const float* queries;
  float* scores;  ///< [rows, stride]
  float* y;
};

/// Scores of R rows, in units that the softmax takes.
template <int R>
HWY_INLINE void score_positions(const SeenSource& at, int64_t first, const HeadRows& head) {
  constexpr int V = kPositionVectors, L = kLanes<float>;
  const Tag<float> d;
  const int64_t width = at.channels / at.heads;
  const auto scale = hn::Set(d, 1.0F / std::sqrt(static_cast<float>(width)));
  for (int64_t s = 0; s < at.stride; s += kSourceStep) {
    Vec<float> sums[R][V];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v)
        sums[r][v] = hn::Zero(d);
    const float* keys = at.keys + first * at.stride + s;
    for (int64_t c = 0; c < width; ++c, keys += at.stride) {
      Vec<float> key[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v)
        key[v] = in_register(hn::LoadU(d, keys + v * L));
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const auto query = hn::Set(d, head.queries[r * at.channels + c]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v)
          sums[r][v] = hn::MulAdd(key[v], query, sums[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v)
        hn::StoreU(hn::Mul(sums[r][v], scale), d, head.scores + r * at.stride + s + v * L);
  }
}

/// Sums of values of R rows, weighted by their scores.
template <int R>
HWY_INLINE void weigh_positions(const SeenSource& at, int64_t first, const HeadRows& head) {
  constexpr int V = kChannelVectors, L = kLanes<float>;
  const Tag<float> d;
  const int64_t width = at.channels / at.heads;
  for (int64_t c = 0; c < width; c += V * L) {
    const int64_t left = width - c;
    Vec<float> sums[R][V];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sums[r][v] = hn::Zero(d);
    const float* values = at.values + first + c;
    for (int64_t s = 0; s < at.count; ++s, values += at.value_stride) {
      Vec<float> value[V];
      value[0] = in_register(load_some<float>(values, left));
      value[1] = left > L ? in_register(load_some<float>(values + L, left - L)) : hn::Zero(d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const auto weight = hn::Set(d, head.scores[r * at.stride + s]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v)
          sums[r][v] = hn::MulAdd(value[v], weight, sums[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      float* const y = head.y + r * at.channels + c;
      store_some<float>(sums[r][0], y, left);
      if (left > L)
        store_some<float>(sums[r][1], y + L, left - L);
    }
  }
}

template <int R>
void attend_rows(const SeenSource& at, const HeadRows& rows) {
  const int64_t width = at.channels / at.heads;
  for (int64_t first = 0; first < at.channels; first += width) {
    const HeadRows head{rows.queries + first, rows.scores, rows.y + first};
    score_positions<R>(at, first, head);
    for (int r = 0; r < R; ++r)
      softmax_scores(head.scores + r * at.stride, at.count);
    weigh_positions<R>(at, first, head);
  }
}

inline void attend_source_rows(
    const SeenSource& at, int64_t rows, const float* queries, float* scores, float* y) {
  int64_t r = 0;
  for (; r + kSourceRows <= rows; r += kSourceRows)
    attend_rows<kSourceRows>(at, {queries + r * at.channels, scores, y + r * at.channels});
  for (; r < rows; ++r)
    attend_rows<1>(at, {queries + r * at.channels, scores, y + r * at.channels});
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
