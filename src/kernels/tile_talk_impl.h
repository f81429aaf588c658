#pragma once

#include "kernels/simd.h"

namespace seqconv::kernels::SEQCONV_ISA {

template <class A>
void prefix_sums(const A* x, int64_t pitch, int64_t rows, A* sums) {
  constexpr int L = kLanes<A>;
  for (int64_t c = 0; c < pitch; c += L) {
    Vec<A> sum = {};
    store<A>(sums + c, sum);
    for (int64_t t = 0; t < rows; ++t) {
      sum += load<A>(x + t * pitch + c);
      store<A>(sums + (t + 1) * pitch + c, sum);
    }
  }
}

template <class A>
void gather_windows(
    const TalkTile<A>& tile,
    const A* x,
    const A* sums,
    A scale,
    A* out) {
  constexpr int L = kLanes<A>;
  for (int64_t t = 0; t < tile.count; ++t) {
    const TileWindow<A> w = tile.windows[t];
    const A* const begin = sums + w.begin * tile.pitch;
    const A* const end = sums + w.end * tile.pitch;
    const A* const left = x + w.left * tile.pitch;
    const A* const right = x + w.right * tile.pitch;
    A* const row = out + t * tile.pitch;
    for (int64_t c = 0; c < tile.pitch; c += L) {
      const Vec<A> edges = w.left_weight * load<A>(left + c) +
          w.right_weight * load<A>(right + c);
      const Vec<A> whole = load<A>(end + c) - load<A>(begin + c);
      store<A>(row + c, (whole + edges) * scale);
    }
  }
}

template <class A>
void scatter_windows(const TalkTile<A>& tile, const A* g, A* steps, A* edges) {
  constexpr int L = kLanes<A>;
  const auto add = [&](A* rows, int64_t row, int64_t c, Vec<A> v) {
    A* const p = rows + row * tile.pitch + c;
    store<A>(p, load<A>(p) + v);
  };
  for (int64_t t = 0; t < tile.count; ++t) {
    const TileWindow<A> w = tile.windows[t];
    for (int64_t c = 0; c < tile.pitch; c += L) {
      const Vec<A> grad = load<A>(g + t * tile.pitch + c);
      add(steps, w.begin, c, grad);
      add(steps, w.end, c, -grad);
      add(edges, w.left, c, w.left_weight * grad);
      add(edges, w.right, c, w.right_weight * grad);
    }
  }
}

template <class A>
void finish_scatter(
    const A* steps,
    const A* edges,
    int64_t pitch,
    int64_t rows,
    A scale,
    A* out) {
  constexpr int L = kLanes<A>;
  for (int64_t c = 0; c < pitch; c += L) {
    Vec<A> sum = {};
    for (int64_t t = 0; t < rows; ++t) {
      sum += load<A>(steps + t * pitch + c);
      store<A>(
          out + t * pitch + c,
          (sum + load<A>(edges + t * pitch + c)) * scale);
    }
  }
}

template <class A>
void edge_products(
    const TalkTile<A>& tile,
    const A* g,
    const A* x,
    A* left,
    A* right) {
  constexpr int L = kLanes<A>;
  for (int64_t t = 0; t < tile.count; ++t) {
    const TileWindow<A> w = tile.windows[t];
    Vec<A> sum_left = {}, sum_right = {};
    for (int64_t c = 0; c < tile.pitch; c += L) {
      const Vec<A> grad = load<A>(g + t * tile.pitch + c);
      sum_left += grad * load<A>(x + w.left * tile.pitch + c);
      sum_right += grad * load<A>(x + w.right * tile.pitch + c);
    }
    left[t] += lane_sum<A>(sum_left);
    right[t] += lane_sum<A>(sum_right);
  }
}

}  // namespace seqconv::kernels::SEQCONV_ISA
