#if defined(SEQCONV_KERNELS_TALK_GRADIENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#undef SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#else
#define SEQCONV_KERNELS_TALK_GRADIENT_INL_H
#endif

#include "kernels/talk_windows-inl.h"

/// The transpose of TaLK's prefix sums: windows step into and out of the
/// inputs that they hold, and the sums over those steps are the gradient. A row
/// that no later window can reach is finished at once, so that a ring of rows
/// in the first-level cache is enough.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Sums over lanes of kLanes vectors at a time, kept until there are as many.
template <class A>
class RowProducts {
 public:
  HWY_INLINE void put(int64_t i, Vec<A> left, Vec<A> right) {
    hn::Store(left, Tag<A>(), left_ + i * kLanes<A>);
    hn::Store(right, Tag<A>(), right_ + i * kLanes<A>);
  }
  /// Adds rows 0 .. count-1 to the results.
  HWY_INLINE void add_to(A* left, A* right, int64_t count) {
    add(left_, left, count);
    add(right_, right, count);
  }

 private:
  HWY_INLINE static void add(const A* rows, A* to, int64_t count) {
    const Tag<A> d;
    Vec<A> sums[kLanes<A>];
    for (int64_t i = 0; i < kLanes<A>; ++i)
      sums[i] = hn::Load(d, rows + i * kLanes<A>);
    store_some<A>(
        hn::Add(load_some<A>(to, count), lane_sums<A>(sums)),
        to,
        count);
  }

  HWY_ALIGN A left_[kLanes<A> * kLanes<A>];
  HWY_ALIGN A right_[kLanes<A> * kLanes<A>];
};

template <class S, class A, int NV, Stores kStores>
class GradColumns {
 public:
  HWY_INLINE
  GradColumns(const TalkGradTile<S, A>& tile, const Columns<A, NV, kStores>& c)
      : tile_(tile), columns_(c) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum_[v] = hn::Zero(d_);
  }

  HWY_INLINE bool run() {
    const int64_t own = -tile_.first;
    const int64_t own_end = HWY_MIN(own + tile_.span, tile_.rows);
    for (int64_t i = 0; i < own; i += kTalkChunk)
      spread</*kEdges=*/false>(i, HWY_MIN(own, i + kTalkChunk));
    for (int64_t i = own; i < own_end; i += L) {
      const int64_t end = HWY_MIN(own_end, i + L);
      spread</*kEdges=*/true>(i, end);
      products_.add_to(
          tile_.left + (i - own),
          tile_.right + (i - own),
          end - i);
      finish(end + tile_.first - tile_.behind);
    }
    for (int64_t i = own_end; i < tile_.rows; i += kTalkChunk) {
      const int64_t end = HWY_MIN(tile_.rows, i + kTalkChunk);
      spread</*kEdges=*/false>(i, end);
      finish(end + tile_.first - tile_.behind);
    }
    finish(tile_.span);
    // Windows may step where the next tile begins.
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      hn::Store(hn::Zero(d_), d_, tile_.steps + slot_ * kTalkChannels + v * L);
    return all_finite<A, NV>(sum_);
  }

 private:
  static constexpr int64_t L = kLanes<A>;
  static constexpr Tag<A> d_{};

  /// Adds a window's gradient where it begins, or takes it off where it ends:
  /// `part` of it at `edge`, the rest at `whole`. Returns lanes of its product
  /// with x, if there is a part.
  template <bool kBegins, bool kEdges>
  HWY_INLINE Vec<A> step(
      const Vec<A> (&grad)[NV],
      const Border<A>& to,
      Vec<A> part,
      const S* x) const {
    auto product = hn::Zero(d_);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      A* const edge = to.edge + v * L;
      const auto at_edge = hn::Load(d_, edge);
      hn::Store(
          kBegins ? hn::MulAdd(part, grad[v], at_edge)
                  : hn::NegMulAdd(part, grad[v], at_edge),
          d_,
          edge);
      A* const whole = to.whole + v * L;
      const auto rest = kBegins ? hn::NegMulAdd(part, grad[v], grad[v])
                                : hn::MulSub(part, grad[v], grad[v]);
      hn::Store(hn::Add(hn::Load(d_, whole), rest), d_, whole);
      if constexpr (kEdges)
        product = hn::MulAdd(grad[v], columns_.get(x, v), product);
    }
    // An infinity beyond a whole border is none of the window's.
    if constexpr (kEdges)
      product = hn::IfThenElseZero(hn::Ne(part, hn::Zero(d_)), product);
    return product;
  }

  /// The steps of windows [begin, end).
  template <bool kEdges>
  HWY_INLINE void spread(int64_t begin, int64_t end) {
    const TalkWindow<A>* w = tile_.windows + begin;
    const TalkWindow<A>* const last = tile_.windows + end;
    const int64_t stride = tile_.stride;
    const S* g = tile_.g + begin * stride;
    const S* const x = tile_.x;
    const S* x_next = x + begin * stride + tile_.x_next;
    const int64_t next = scalar(tile_.next);
    A* const steps = tile_.steps;
    for (int64_t i = 0; w != last; ++i, ++w) {
      if constexpr (kEdges) {
        columns_.prefetch(g + next);
        // If not streaming, a row that is needed soon.
        columns_.template prefetch<
            kStores == Stores::kStreaming ? OwnCache::kSecond
                                          : OwnCache::kFirst>(x_next);
        x_next += stride;
      }
      Vec<A> grad[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        grad[v] = in_register(columns_.get(g, v));
      g += stride;
      WindowPlaces<A> at(*w);
      const auto left = step<true, kEdges>(
          grad,
          at.begin(steps),
          hn::Set(d_, w->left),
          kEdges ? x + at.left_input() * stride : nullptr);
      at.wait_for(left);
      const auto right = step<false, kEdges>(
          grad,
          at.end(steps),
          hn::Set(d_, w->right),
          kEdges ? x + at.right_input() * stride : nullptr);
      if constexpr (kEdges)
        products_.put(i, left, right);
    }
  }

  /// Gradients of the inputs before `until`, which no window will step into any
  /// more.
  HWY_INLINE void finish(int64_t until) {
    const auto scale = hn::Set(d_, tile_.scale);
    until = HWY_MIN(until, tile_.span);
    for (; done_ < until; ++done_) {
      A* const from = tile_.steps + slot_ * kTalkChannels;
      S* const out = tile_.grad_x + done_ * tile_.grad_x_stride;
      if (kStores != Stores::kStreaming)
        columns_.prefetch(out + tile_.next);
      constexpr int kShares = kSharing<S, NV>;
#pragma GCC unroll 4
      for (int v = 0; v < NV; v += kShares) {
        Vec<A> grads[kShares];
#pragma GCC unroll 2
        for (int n = 0; n < kShares; ++n) {
          A* const steps = from + (v + n) * L;
          sum_[v + n] = hn::Add(sum_[v + n], hn::Load(d_, steps));
          hn::Store(hn::Zero(d_), d_, steps);
          grads[n] = hn::Mul(sum_[v + n], scale);
        }
        columns_.put(grads, out, v);
      }
      slot_ = slot_ + 1 == tile_.ring ? 0 : slot_ + 1;
    }
  }

  const TalkGradTile<S, A> tile_;  // a copy: nothing that is written changes it
  const Columns<A, NV, kStores> columns_;
  Vec<A> sum_[NV];
  int64_t done_ = 0;  // finished rows
  int64_t slot_ = 0;  // of the next one
  RowProducts<A> products_;
};

template <class S, class A, int NV, Stores kStores>
HWY_INLINE bool grad_columns(
    const TalkGradTile<S, A>& tile,
    const Columns<A, NV, kStores>& columns) {
  return GradColumns<S, A, NV, kStores>(tile, columns).run();
}

template <class S, class A>
HWY_INLINE bool grad_lanes(const TalkGradTile<S, A>& tile) {
  const int64_t count = tile.channels;
  A* const steps = tile.steps;
  const Tag<A> d;
  for (int64_t i = 0; i < (tile.span + 1) * kTalkLanes; i += kLanes<A>)
    hn::Store(hn::Zero(d), d, steps + i);
  for (int64_t t = 0; t < tile.rows; ++t) {
    HWY_ALIGN A grad[kTalkLanes];
    for (int64_t c = 0; c < count; c += kLanes<A>)
      hn::Store(
          load_some<A>(tile.g + t * tile.stride + c, count - c),
          d,
          grad + c);
    for (int64_t c = 0; c < count; ++c) {
      const TalkWindow<A>& w = tile.windows[t * kTalkLanes + c];
      const A g = grad[c], left = w.left * g, right = w.right * g;
      steps[w.low_edge + c] += left;
      steps[w.low + c] += g - left;
      steps[w.high + c] += right - g;
      steps[w.high_edge + c] -= right;
    }
  }
  const auto scale = hn::Set(d, tile.scale);
  bool finite = true;
  for (int64_t c = 0; c < count; c += kLanes<A>) {
    Vec<A> sum[1] = {hn::Zero(d)};
    for (int64_t r = 0; r < tile.span; ++r) {
      sum[0] = hn::Add(sum[0], load(steps + r * kTalkLanes + c));
      store_some<A>(
          hn::Mul(sum[0], scale),
          tile.grad_x + r * tile.grad_x_stride + c,
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
  tile.grad_x += channels;
  tile.channels -= channels;
}

template <class S, class A>
bool talk_gradient_tile(const TalkGradTile<S, A>& tile) {
  if (tile.lanes == kTalkLanes)
    return grad_lanes(tile);
  SEQCONV_FOR_COLUMNS(grad_columns);
}

/// For heads narrower than a vector.
template <class S, class A>
void talk_edge_products(const TalkEdgeTile<S, A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t) {
    const TalkWindow<A>& w = tile.windows[t];
    const auto product = [&](int64_t input) HWY_ATTR {
      A sum = 0;
      for (int64_t c = 0; c < tile.channels; c += kLanes<A>)
        sum += lane_sum(hn::Mul(
            load_some<A>(tile.g + t * tile.stride + c, tile.channels - c),
            load_some<A>(tile.x + input * tile.stride + c, tile.channels - c)));
      return sum;
    };
    if (w.left != 0)
      tile.left[t] += product(w.left_input);
    if (w.right != 0)
      tile.right[t] += product(w.right_input);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
