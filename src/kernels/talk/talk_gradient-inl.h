#if defined(SEQCONV_KERNELS_TALK_GRADIENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#undef SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#else
#define SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#endif

#include <algorithm>

#include "kernels/talk/talk_columns-inl.h"
#include "kernels/talk/talk_edges-inl.h"

/// The transpose of TaLK's prefix sums: going from row to row, a sum over the
/// gradients of the windows that hold the row. What enters and leaves it at a
/// row are the edges that stand there, so that nothing but the result is
/// written, and written once. The rows of g that they may be of lie in a ring
/// in the first-level cache.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A, int NV, Stores kStores>
class GradColumns {
 public:
  HWY_INLINE
  GradColumns(const TalkGradTile<S, A>& tile, const Columns<A, NV, kStores>& c)
      : tile_(tile),
        columns_(c),
        slots_(tile.ring - 1),
        g_(tile.g),
        next_g_(tile.g + tile.next_strip),
        x_(tile.x),
        first_(tile.first),
        out_(tile.grad_x) {}

  HWY_INLINE bool run() {
    Sums sums;
    EdgeProducts<A> products;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sums.later[v] = hn::Zero(d_);
    const int64_t before = tile_.own + tile_.begin + tile_.ahead - 1;
    while (staged_ < HWY_MIN(tile_.rows, before))
      stage_row();
    // Without grad_x the tile's own rows are as those around them.
    const int64_t own = tile_.grad_x == nullptr ? tile_.span : 0;
    for (int64_t r = tile_.begin; r < own; ++r)
      add_row</*kOwn=*/false>(sums, products);
    for (int64_t r = own; r < tile_.span; ++r)
      add_row</*kOwn=*/true>(sums, products);
    const bool finite = all_finite<A, NV>(sums.later);
    // Of these the products alone are wanted.
    for (int64_t r = tile_.span; r < tile_.end; ++r)
      add_row</*kOwn=*/false>(sums, products);
    products.add_to(tile_.products, kept_);
    return finite;
  }

 private:
  static constexpr int64_t L = kLanes<A>;
  static constexpr Tag<A> d_{};

  struct Sums {
    Vec<A> row[NV];
    Vec<A> later[NV];
  };

  /// Copies a row of g into the ring.
  HWY_INLINE void stage_row() {
    A* const to = tile_.ring_of_g + (staged_ & slots_) * kTalkChannels;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      hn::Store(columns_.get(g_, v), d_, to + v * L);
    g_ += tile_.stride;
    ++staged_;
  }

  /// The edges at the next row, which is one of the tile's own or not.
  template <bool kOwn>
  HWY_INLINE void add_row(Sums& sums, EdgeProducts<A>& products) {
    if (staged_ < tile_.rows)
      stage_row();
    // Rows have as many windows as there are rows: one after the other.
    columns_.prefetch(next_g_);
    next_g_ += tile_.stride;
    if (kOwn)
      columns_.template prefetch<
          kStores == Stores::kStreaming ? OwnCache::kSecond : OwnCache::kFirst>(
          x_ + tile_.next_x);
    int64_t edge = *first_++;
    if (kOwn || edge >= 0) {
      Vec<A> x[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        x[v] = columns_.get(x_, v);
        sums.row[v] = sums.later[v];
      }
      for (; edge >= 0; edge = tile_.next[edge]) {
        products.put(kept_, edge, add_edge<kOwn>(edge, x, sums));
        if (HWY_UNLIKELY(++kept_ == products.kMax)) {
          products.add_to(tile_.products, kept_);
          kept_ = 0;
        }
      }
    }
    x_ += tile_.stride;
    if (kOwn)
      put_row(sums);
  }

  /// Returns lanes of its product with x.
  template <bool kOwn>
  HWY_INLINE Vec<A> add_edge(int64_t edge, const Vec<A> (&x)[NV], Sums& sums)
      const {
    static constexpr A kSigns[2] = {A(0), A(-0.0)};
    const A* const from = tile_.ring_of_g + (edge / 2 & slots_) * kTalkChannels;
    const auto part = hn::Set(d_, tile_.edges.parts[edge]);
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
    if (kStores != Stores::kStreaming)
      columns_.prefetch(out_ + tile_.next_strip);
    const auto scale = hn::Set(d_, tile_.scale);
    constexpr int kShares = kSharing<S, NV>;
#pragma GCC unroll 4
    for (int v = 0; v < NV; v += kShares) {
      Vec<A> grads[kShares];
#pragma GCC unroll 2
      for (int n = 0; n < kShares; ++n)
        grads[n] = hn::Mul(sums.row[v + n], scale);
      columns_.put(grads, out_, v);
    }
    out_ += tile_.stride;
  }

  const TalkGradTile<S, A> tile_;  // a copy: nothing that is written changes it
  const Columns<A, NV, kStores> columns_;
  const int64_t slots_;
  const S* g_;  // of the next window
  const S* next_g_;
  int64_t staged_ = 0;
  const S* x_;  // of the next row
  const int32_t* first_;
  S* out_;            // of the next row of the tile's own
  int64_t kept_ = 0;  // products
};

template <class S, class A, int NV, Stores kStores>
HWY_INLINE bool grad_columns(
    const TalkGradTile<S, A>& tile,
    const Columns<A, NV, kStores>& columns) {
  return GradColumns<S, A, NV, kStores>(tile, columns).run();
}

/// Sums over rows of what edges add to a row and to all later ones.
template <class S, class A>
HWY_INLINE bool grad_lanes(const TalkGradTile<S, A>& tile) {
  const int64_t count = tile.channels;
  A* const steps = tile.ring_of_g;
  const Tag<A> d;
  for (int64_t i = 0; i < (tile.span + 3) * kTalkLanes; i += kLanes<A>)
    hn::Store(hn::Zero(d), d, steps + i);
  for (int64_t t = 0; t < tile.rows; ++t)
    for (int64_t c = 0; c < count; ++c) {
      const A g = widen(tile.g[t * tile.stride + c]);
      for (int64_t side = 0; side < 2; ++side) {
        const int64_t edge = 2 * (t * kTalkLanes + c) + side;
        const A part = tile.edges.parts[edge] * g;
        A* const step = steps + tile.edges.rows[edge] * kTalkLanes + c;
        step[0] += part;
        step[kTalkLanes] += (side == 0 ? g : -g) - part;
      }
    }
  const auto scale = hn::Set(d, tile.scale);
  bool finite = true;
  for (int64_t c = 0; c < count; c += kLanes<A>) {
    Vec<A> sum[1] = {load(steps + c)};
    for (int64_t r = 0; r < tile.span; ++r) {
      sum[0] = hn::Add(sum[0], load(steps + (r + 1) * kTalkLanes + c));
      store_some<A>(
          hn::Mul(sum[0], scale),
          tile.grad_x + r * tile.stride + c,
          count - c);
    }
    finite = all_finite<A, 1>(sum) && finite;
  }
  return finite;
}

template <class S, class A>
HWY_INLINE void advance(TalkGradTile<S, A>& tile, int64_t channels) {
  tile.g += channels;
  tile.x += channels;
  if (tile.grad_x != nullptr)
    tile.grad_x += channels;
  tile.channels -= channels;
}

template <class S, class A>
HWY_INLINE bool grad_all_columns(const TalkGradTile<S, A>& tile) {
  SEQCONV_FOR_COLUMNS(grad_columns);
}

template <class S, class A>
bool talk_gradient_tile(const TalkGradTile<S, A>& tile) {
  if (tile.lanes == kTalkLanes)
    return grad_lanes(tile);
  std::fill_n(tile.products, 2 * tile.rows, A(0));
  const bool finite = grad_all_columns(tile);
  add_products(tile);
  return finite;
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
