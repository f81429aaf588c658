#if defined(SEQCONV_KERNELS_TALK_BACKWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_BACKWARD_INL_H
#undef SEQCONV_KERNELS_TALK_BACKWARD_INL_H
#else
#define SEQCONV_KERNELS_TALK_BACKWARD_INL_H
#endif

#include "kernels/talk/talk_columns-inl.h"
#include "kernels/talk/talk_kernels.h"

/// The transpose of TaLK's prefix sums: going from row to row, a sum over the
/// gradients of the windows that hold the row. What enters and leaves it at a
/// row are the edges that stand there, so that nothing but the result is
/// written, and written once. The rows of g that they may be of lie in a ring
/// in the first-level cache.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Products at edges, whose lanes are summed up many at a time.
template <class A>
class EdgeProducts {
 public:
  explicit EdgeProducts(A* to) : to_(to) {}

  HWY_INLINE void put(int64_t edge, Vec<A> product) {
    edges_[count_] = static_cast<int32_t>(edge);
    hn::Store(product, Tag<A>(), lanes_ + count_ * L);
    if (HWY_UNLIKELY(++count_ == kMax))
      flush();
  }
  /// Adds them to those of their edges. Apart, for the loops around it need all
  /// registers.
  HWY_NOINLINE void flush() {
    for (int64_t i = count_; i % L != 0; ++i)
      hn::Store(hn::Zero(Tag<A>()), Tag<A>(), lanes_ + i * L);
    for (int64_t i = 0; i < count_; i += L) {
      Vec<A> v[L];
      for (int64_t n = 0; n < L; ++n)
        v[n] = hn::Load(Tag<A>(), lanes_ + (i + n) * L);
      HWY_ALIGN A sums[L];
      hn::Store(lane_sums<A>(v), Tag<A>(), sums);
      const int64_t some = HWY_MIN(L, count_ - i);
      for (int64_t n = 0; n < some; ++n)
        to_[edges_[i + n]] += sums[n];
    }
    count_ = 0;
  }

 private:
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kMax = 64;

  A* const to_;
  int64_t count_ = 0;
  int32_t edges_[kMax];
  HWY_ALIGN A lanes_[kMax * L];
};

template <class S, class A, int NV, bool kStreams>
class BackwardColumns {
 public:
  HWY_INLINE explicit BackwardColumns(const TalkGradTile<S, A>& tile)
      : tile_(tile),
        columns_{tile.channels},
        g_(tile.g),
        x_(tile.x),
        first_(tile.first),
        out_(tile.grad_x),
        next_(tile.channels > kTalkChannels ? kTalkChannels : tile.next) {}

  /// Whether all gradients were finite.
  HWY_INLINE bool run() {
    Sums sums;
    EdgeProducts<A> products(tile_.products);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sums.later[v] = hn::Zero(d_);
    const int64_t before = tile_.own + tile_.begin + tile_.ahead - 1;
    while (staged_ < HWY_MIN(tile_.rows, before))
      stage_row();
    for (int64_t r = tile_.begin; r < 0; ++r)
      add_row</*kOwn=*/false>(sums, products);
    for (int64_t r = 0; r < tile_.span; ++r)
      add_row</*kOwn=*/true>(sums, products);
    const bool finite = all_finite<A, NV>(sums.later);
    // Of these the products alone are wanted.
    for (int64_t r = tile_.span; r < tile_.end; ++r)
      add_row</*kOwn=*/false>(sums, products);
    products.flush();
    return finite;
  }

 private:
  static constexpr int64_t L = kLanes<A>;
  static constexpr Tag<A> d_{};

  struct Sums {
#if HWY_ARCH_ARM
    // Vectors of NEON have constructors, which an implicit one of this struct,
    // not compiled for the instruction set, could not call inline.
    HWY_INLINE Sums() {}
#endif
    Vec<A> row[NV];
    Vec<A> later[NV];
  };

  HWY_INLINE A* staged(int64_t window) const {
    return tile_.ring_of_g + (window & (tile_.ring - 1)) * kTalkChannels;
  }
  /// Copies a row of g into the ring.
  HWY_INLINE void stage_row() {
    A* const to = staged(staged_++);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      hn::Store(columns_.get(g_, v), d_, to + v * L);
    g_ += tile_.stride;
  }

  /// The edges at the next row, which is one of the tile's own or not.
  template <bool kOwn>
  HWY_INLINE void add_row(Sums& sums, EdgeProducts<A>& products) {
    if (staged_ < tile_.rows) {
      columns_.prefetch(g_ + next_);
      stage_row();
    }
    if (kOwn)
      columns_.prefetch(x_ + next_);
    int64_t edge = *first_++;
    if (kOwn || edge >= 0) {
      Vec<A> x[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        x[v] = columns_.get(x_, v);
        sums.row[v] = sums.later[v];
      }
      for (; edge >= 0; edge = tile_.edges[edge].next)
        products.put(edge, add_edge<kOwn>(edge, x, sums));
    }
    x_ += tile_.stride;
    if (kOwn && out_ != nullptr)
      put_row(sums);
  }

  /// Returns lanes of its product with x.
  template <bool kOwn>
  HWY_INLINE Vec<A> add_edge(int64_t edge, const Vec<A> (&x)[NV], Sums& sums) const {
    static constexpr A kSigns[2] = {A(0), A(-0.0)};
    const A* const from = staged(edge / 2);
    const auto part = hn::Set(d_, tile_.edges[edge].part);
    const auto sign = hn::Set(d_, kSigns[edge % 2]);
    auto product = hn::Zero(d_);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto g = in_register(hn::Load(d_, from + v * L));
      if (kOwn)
        sums.row[v] = hn::MulAdd(part, g, sums.row[v]);
      sums.later[v] = hn::Add(sums.later[v], hn::Xor(g, sign));
      product = v == 0 ? hn::Mul(g, x[v]) : hn::MulAdd(g, x[v], product);
    }
    return product;
  }

  HWY_INLINE void put_row(const Sums& sums) {
    if (!kStreams)
      columns_.prefetch(out_ + next_);
    const auto scale = hn::Set(d_, tile_.scale);
    columns_.put(out_, [&](int v) HWY_ATTR { return hn::Mul(sums.row[v], scale); });
    out_ += tile_.stride;
  }

  const TalkGradTile<S, A> tile_;  // a copy: nothing that is written changes it
  const Columns<S, A, NV, kStreams> columns_;
  const S* g_;  // of the next window to be staged
  int64_t staged_ = 0;
  const S* x_;            // of the next row
  const int32_t* first_;  // its first edge
  S* out_;                // of the next row of the tile's own
  const int64_t next_;    // from a row to that of the next strip
};

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
