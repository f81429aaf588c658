#if defined(SEQCONV_KERNELS_TAP_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#undef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#else
#define SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#endif

#include <array>
#include <type_traits>

#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/conv/shared_products-inl.h"
#include "kernels/conv/stage-inl.h"

/// Gradients of taps of every position: scalar products of rows of the output's
/// gradient with rows of the input. Sums over lanes cost nearly as much as the
/// products, so a vector holds half as many channels of two rows of the input,
/// which leaves half as many sums to make.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Which channels a part has: of a whole pair of parts the even ones or the odd
/// ones, or what is found out when running.
enum class Share { kAny, kEven, kOdd };

/// How products of NT rows with kTaps taps, NP vectors of pairs of rows for
/// each of them, fill accumulators. Rows of g whose number is odd begin with
/// the tap before the first.
template <class A, int P, int NP>
struct PairBlock {
  static constexpr int NT = kLanes<A> / NP, kTaps = P * NP;
  static_assert(NT % P == 0);
};

/// A vector of two parts, or the first if it is one.
template <class A, int P>
HWY_INLINE Vec<A> join_parts(
    hn::Vec<PartTag<A, P>> first,
    [[maybe_unused]] hn::Vec<PartTag<A, P>> second) {
  if constexpr (P == 1)
    return first;
#if HWY_TARGET != HWY_SCALAR
  else
    return hn::Combine(Tag<A>(), second, first);
#endif
}

#if HWY_TARGET != HWY_SCALAR
/// As many pairs of bfloat16 as half a vector has words, twice. Copies within
/// registers would take the place of products; loads do not.
template <class A>
HWY_INLINE auto load_words_twice(const BFloat16* p) {
  const hn::RebindToUnsigned<Tag<A>> du;
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<decltype(du)>{_mm512_broadcast_i32x8(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
#else
  const hn::Repartition<uint16_t, Tag<A>> halves;
  return hn::BitCast(du, hn::LoadDup128(halves, &p->bits));
#endif
}
#endif

/// Part c of a row of g, as often as rows fill a vector. kShare: which one it
/// is of a whole pair, known when compiling, if parts share channels.
template <class S, class A, int P, bool kTail, Share kShare>
HWY_INLINE Vec<A> load_for_pair(const S* row, int64_t c, int64_t channels) {
  constexpr int W = kPartLanes<A, P>;
#if HWY_TARGET == HWY_AVX3
  if constexpr (P == 2 && !kTail && std::is_same_v<S, float>)
    return Vec<A>{_mm512_broadcast_f32x8(_mm256_loadu_ps(row + c))};
#endif
  if constexpr (kPartsShare<S, P> && kShare == Share::kEven)
    return even_halves(Tag<A>(), load_words_twice<A>(row + c));
  if constexpr (kPartsShare<S, P> && kShare == Share::kOdd)
    return odd_halves(Tag<A>(), load_words_twice<A>(row + c - W));
  const auto part = kTail || kPartsShare<S, P>
      ? load_part<S, A, P>(row, c, channels)
      : load_all(PartTag<A, P>(), row + c);
  return join_parts<A, P>(part, part);
}

/// Where part c of row r of x is.
template <class S, class A, int P, bool kStaged>
HWY_INLINE const A*
part_of_row(const ProductTile<S, A>& tile, int64_t r, int64_t c) {
  return tile.x + (kStaged ? stage_index<A, P>(r, c) : r * tile.x_stride + c);
}

/// A part of P rows as one vector: of a stage, or of rows `stride` apart.
template <class A, int P, bool kStaged>
HWY_INLINE Vec<A> load_pair(const A* x, int64_t stride) {
  if constexpr (kStaged || P == 1)
    return load(x);
  const PartTag<A, P> d;
  return join_parts<A, P>(load_all(d, x), load_all(d, x + stride));
}

/// acc[i][p] += part c of g[t + i] * x[r ...], r = (t + i) / P * P + j + p * P:
/// every vector of x is read once for all rows of g. t and j are multiples of
/// P. kFirst: acc is set, not added to.
template <
    class S,
    class A,
    int P,
    int NP,
    bool kStaged,
    bool kTail,
    bool kFirst = false,
    Share kShare = Share::kAny>
HWY_INLINE void add_pair_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    int64_t c,
    Vec<A> (&acc)[PairBlock<A, P, NP>::NT][NP]) {
  constexpr int NT = PairBlock<A, P, NP>::NT;
  Vec<A> grad[NT];
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i)
    grad[i] = load_for_pair<S, A, P, kTail, kShare>(
        tile.g + (t + i) * tile.g_stride,
        c,
        tile.channels);
  const A* x = part_of_row<S, A, P, kStaged>(tile, t + j, c);
#pragma GCC unroll 24
  for (int p = 0; p < NP + NT / P - 1; ++p) {
    const auto rows = in_register(load_pair<A, P, kStaged>(x, tile.x_stride));
    x = kStaged ? x + P * kStagePitch : scalar(x + P * tile.x_stride);
#pragma GCC unroll 8
    for (int i = 0; i < NT; ++i)
      if (const int k = p - i / P; k >= 0 && k < NP)
        acc[i][k] = kFirst ? hn::Mul(grad[i], rows)
                           : hn::MulAdd(grad[i], rows, acc[i][k]);
  }
}

/// <g[t], x[t + j]> alone, added up as among others.
template <class S, class A, int P, bool kStaged>
HWY_INLINE A product(const ProductTile<S, A>& tile, int64_t t, int64_t j) {
  const PartTag<A, P> d;
  auto sum = hn::Zero(d);
  for (int64_t c = 0; c < tile.channels; c += kPartLanes<A, P>) {
    sum = hn::MulAdd(
        load_part<S, A, P>(tile.g + t * tile.g_stride, c, tile.channels),
        hn::LoadU(d, part_of_row<S, A, P, kStaged>(tile, t + j, c)),
        sum);
  }
  return lane_sum(sum);
}

/// Products whose sums over lanes, which fill P vectors, are not finished: that
/// is done between the products of the next block, which do not wait for it.
template <class A, int P, int NP>
class UnfinishedBlock {
  using Block = PairBlock<A, P, NP>;
  static constexpr int L = kLanes<A>, NT = Block::NT;

 public:
  /// Products of NT rows from tap j on, which go to `out` and, row by row,
  /// out_stride further.
  HWY_INLINE void set(Vec<A> (&acc)[NT][NP], A* out, int64_t j) {
    Vec<A>* const all = &acc[0][0];
    if constexpr (L == 1) {
      v_[0] = all[0];
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i)
        v_[i] = add_neighbours<static_cast<int>(sizeof(A)), A>(
            all[2 * i],
            all[2 * i + 1]);
    }
    out_ = out + j;
    first_ = j == 0;
  }

  HWY_INLINE void finish(bool add, int64_t out_stride) {
    if (out_ == nullptr)
      return;
    add_blocks();
    // All kTaps are written: the next block, or nobody, reads those beyond K.
    const hn::CappedTag<A, Block::kTaps> d;
    HWY_ALIGN A sums[P * L];
    if constexpr (Block::kTaps < L)
#pragma GCC unroll 2
      for (int q = 0; q < P; ++q)
        hn::Store(v_[q], Tag<A>(), sums + q * L);
#pragma GCC unroll 8
    for (int i = 0; i < NT; ++i) {
      A* const out = out_ + i * out_stride - i % P;
      auto sum = row(i, sums);
      if (add)
        sum = hn::Add(sum, hn::LoadU(d, out));
      if (i % P == 1 && first_)
        hn::BlendedStore(sum, hn::Not(hn::FirstN(d, 1)), d, out);
      else
        hn::StoreU(sum, d, out);
    }
  }

 private:
  static constexpr int kVectors = HWY_MAX(1, L / 2);

  /// v -> P vectors of products, row by row of g, in the order of their taps.
  HWY_INLINE void add_blocks() {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kVectors > P)
      add_all_neighbours<2 * static_cast<int>(sizeof(A)), A, kVectors, P>(v_);
    // Those of the second rows of pairs are in the upper half.
    if constexpr (P == 2) {
      using Index = hwy::MakeSigned<A>;
      HWY_ALIGN static constexpr auto kOrder = [] {
        std::array<Index, L> order{};
        for (int i = 0; i < L; ++i)
          order[static_cast<size_t>(i)] =
              static_cast<Index>(i / 2 + i % 2 * (L / 2));
        return order;
      }();
      const auto order = hn::SetTableIndices(Tag<A>(), kOrder.data());
#pragma GCC unroll 2
      for (int i = 0; i < P; ++i)
        v_[i] = hn::TableLookupLanes(v_[i], order);
    }
#endif
  }

  /// The products of row i.
  HWY_INLINE hn::Vec<hn::CappedTag<A, Block::kTaps>> row(
      int i,
      [[maybe_unused]] const A* sums) const {
    if constexpr (Block::kTaps == L)
      return v_[i];
    else
      return hn::LoadU(
          hn::CappedTag<A, Block::kTaps>(),
          sums + i * Block::kTaps);
  }

  Vec<A> v_[kVectors];
  A* out_ = nullptr;  ///< null: there is no block
  bool first_ = false;
};

/// add_pair_products() for all parts but the first; the second one begins at
/// channel c.
template <class S, class A, int P, int NP, bool kStaged, int64_t kWidth>
HWY_INLINE void add_more_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    int64_t c,
    Vec<A> (&acc)[PairBlock<A, P, NP>::NT][NP]) {
  constexpr int64_t W = kPartLanes<A, P>;
  if constexpr (kPartsShare<S, P> && kWidth > 0) {
    static_assert(kWidth % (2 * W) == 0);
    constexpr auto kOdd = Share::kOdd, kEven = Share::kEven;
    for (; c + W < kWidth; c += 2 * W) {
      add_pair_products<S, A, P, NP, kStaged, false, false, kOdd>(
          tile,
          t,
          j,
          c,
          acc);
      add_pair_products<S, A, P, NP, kStaged, false, false, kEven>(
          tile,
          t,
          j,
          c + W,
          acc);
    }
    add_pair_products<S, A, P, NP, kStaged, false, false, kOdd>(
        tile,
        t,
        j,
        c,
        acc);
  } else {
    for (; c + W <= tile.channels; c += W)
      add_pair_products<S, A, P, NP, kStaged, false>(tile, t, j, c, acc);
    if (c < tile.channels)
      add_pair_products<S, A, P, NP, kStaged, true>(tile, t, j, c, acc);
  }
}

/// Products of all rows. With kWidth > 0 these are the channels, known when
/// compiling.
template <class S, class A, int P, int NP, bool kStaged, int64_t kWidth>
HWY_NOINLINE void
product_rows(const ProductTile<S, A>& any, A* out, int64_t out_stride) {
  using Block = PairBlock<A, P, NP>;
  constexpr int NT = Block::NT, kTaps = Block::kTaps;
  constexpr int64_t kPart = kPartLanes<A, P>;
  // Rows of x that lie anywhere take registers that overlapping needs.
  constexpr bool kOverlap = kStaged;
  // A copy, which stores do not change.
  ProductTile<S, A> tile = any;
  if constexpr (kWidth > 0)
    tile.channels = kWidth;
  const int64_t K = tile.kernel_size;
  const auto add_alone = [&](int64_t t, int64_t j) {
    A& to = out[t * out_stride + j];
    to = (tile.add ? to : A(0)) + product<S, A, P, kStaged>(tile, t, j);
  };
  UnfinishedBlock<A, P, NP> last;
  int64_t t = 0;
  for (; t + NT <= tile.rows; t += NT) {
    prefetch_lines<NT>(tile);
    for (int64_t j = 0; j < K; j += kTaps) {
      Vec<A> acc[NT][NP];
      int64_t c = 0;
      if (tile.channels >= kPart) {
        constexpr auto kShare = kWidth > 0 ? Share::kEven : Share::kAny;
        add_pair_products<S, A, P, NP, kStaged, false, true, kShare>(
            tile,
            t,
            j,
            c,
            acc);
        c += kPart;
      } else {
#pragma GCC unroll 8
        for (int i = 0; i < NT; ++i)
#pragma GCC unroll 16
          for (int k = 0; k < NP; ++k)
            acc[i][k] = hn::Zero(Tag<A>());
      }
      if (kOverlap)
        last.finish(tile.add, out_stride);
      add_more_products<S, A, P, NP, kStaged, kWidth>(tile, t, j, c, acc);
      last.set(acc, out + t * out_stride, j);
      if (!kOverlap)
        last.finish(tile.add, out_stride);
    }
    // The last tap of odd rows, which began with the one before the first.
    if (P == 2 && K % kTaps == 0)
      for (int i = 1; i < NT; i += 2)
        add_alone(t + i, K - 1);
  }
  if (kOverlap)
    last.finish(tile.add, out_stride);
  for (; t < tile.rows; ++t)
    for (int64_t j = 0; j < K; ++j)
      add_alone(t, j);
}

template <class S, class A, bool kStaged, int64_t kWidth>
HWY_INLINE void
product_rows_any(const ProductTile<S, A>& tile, A* out, int64_t out_stride) {
  constexpr int L = kLanes<A>, P = kMaxPaired<A>;
  if constexpr (L < 8)
    return product_rows<S, A, P, L / P, kStaged, 0>(tile, out, out_stride);
  else if (L == 8 || tile.kernel_size <= 8)
    return product_rows<S, A, P, 8 / P, kStaged, kWidth>(tile, out, out_stride);
  else
    product_rows<S, A, P, L / P, kStaged, kWidth>(tile, out, out_stride);
}

template <class S, class A>
void tap_products(const ProductTile<S, A>& tile, A* out, int64_t out_stride) {
  // Heads of one stage are the common ones.
  const bool common = tile.channels == kStagePitch;
  if (tile.kernel_size <= kFewestTaps) {
    constexpr int kTaps = HWY_MIN(kFewestTaps, kLanes<A>);
    common ? product_rows<S, A, 1, kTaps, false, kStagePitch>(
                 tile,
                 out,
                 out_stride)
           : product_rows<S, A, 1, kTaps, false, 0>(tile, out, out_stride);
  } else if (tile.paired) {
    common ? product_rows_any<S, A, true, kStagePitch>(tile, out, out_stride)
           : product_rows_any<S, A, true, 0>(tile, out, out_stride);
  } else {
    common ? product_rows_any<S, A, false, kStagePitch>(tile, out, out_stride)
           : product_rows_any<S, A, false, 0>(tile, out, out_stride);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
