#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/bfloat16.h"
#include "kernels/isa.h"

/// The inner loops of TaLK, compiled for each instruction set in
/// talk_kernels.cpp. Rows are positions of one sequence.
namespace seqconv::internal::kernels {

/// A window that holds the shares `left` of row `first`, `right` of row `last`,
/// and the rows between; where it ends before it begins, these rows, last ..
/// first, negatively. As prefix sums S[i] = ... + x[i-1] it is
///   S[last] + right * (S[last+1] - S[last])
///     - S[first+1] - left * (S[first] - S[first+1]).
template <class A>
struct TalkWindow {
  std::conditional_t<sizeof(A) == 4, int32_t, int64_t> first, last;
  A left, right;  ///< in (0, 1], or NaN
};

/// Offsets of a head at rows first .. first+count-1 of a sequence that has
/// `valid`, to whose ends edges outside of it move.
template <class O>
struct TalkOffsets {
  const O* left = nullptr;   ///< of row `first`
  const O* right = nullptr;  ///< null: all 0
  int64_t stride = 1;        ///< from row to row
  int64_t max_left = 0;      ///< rows to the left at an offset of 1
  int64_t max_right = 0;
  int64_t first = 0;
  int64_t count = 0;
  int64_t valid = 0;
};

/// Channels of a tile: they share their windows.
inline constexpr int64_t kTalkChannels = 64;
/// Channels of heads that are worked on together, for each has few.
inline constexpr int64_t kTalkTogether = 64;
/// How many windows more than are asked for may be written.
inline constexpr int64_t kTalkSpare = 16;

/// Rows of a ring that holds so many: a power of two.
constexpr int64_t talk_ring(int64_t rows) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

/// Rows of outputs of channels that share their windows.
template <class S, class A>
struct TalkTile {
  const TalkWindow<A>* windows = nullptr;  ///< [rows]
  int64_t rows = 0;
  int64_t channels = 0;  ///< at most kTalkChannels
  A scale = 1;
  int64_t origin = 0;    ///< sums are those of rows from here on
  int64_t inputs = 0;    ///< how many rows they are of
  int64_t ahead = 0;     ///< window i has no part of input i + ahead
  const S* x = nullptr;  ///< row `origin`
  S* y = nullptr;        ///< of window 0
  int64_t stride = 0;    ///< of x and y
  /// The sum of all rows before i, from `origin` on, is in row i mod `ring`, a
  /// power of two; the last row stands before the first one too.
  A* sums = nullptr;       ///< [ring, kTalkChannels] and one row before
  int64_t ring = 1;        ///< of the sums of i + ahead rows, window i needs
                           ///< none but the last `ring`
  bool streaming = false;  ///< stores to y go past the caches,
  int64_t next = 0;        ///< and inputs so far on are fetched for later

  void advance(int64_t count) {
    x += count;
    y += count;
    channels -= count;
  }
};

/// Where a window begins or ends, as what it does to a sum over the windows'
/// gradients that goes from row to row. Edges 2i and 2i+1 are those of window
/// i. At the first one its gradient is added to the sums of later rows, and
/// `part` of it to that row's. At the other one it is taken off the sums of
/// later rows, and `part` of it, which is not positive, added to that row's.
template <class A>
struct TalkEdge {
  int32_t next;  ///< edge at the same row, or -1
  A part;
};

/// The `span` inputs of a tile, numbered 0 .. span-1, and all windows that may
/// hold some of them.
template <class S, class A>
struct TalkGradTile {
  const TalkEdge<A>* edges = nullptr;  ///< [2 rows], of windows
  int64_t rows = 0;
  int64_t own = 0;                 ///< the window at input 0
  int64_t begin = 0;               ///< rows [begin, end) have edges, begin <= 0
  int64_t end = 0;                 ///< >= span
  const int32_t* first = nullptr;  ///< [end - begin], an edge of each or -1
  int64_t channels = 0;
  A scale = 1;
  int64_t span = 0;
  const S* g = nullptr;    ///< of window 0
  const S* x = nullptr;    ///< of row `begin`
  S* grad_x = nullptr;     ///< of input 0, or null
  int64_t stride = 0;      ///< of g, x and grad_x
  int64_t ahead = 0;       ///< edges at row r are of windows < own + r + ahead
  int64_t ring = 1;        ///< a power of two; of these the last `ring` have all
                           ///< edges at row r
  A* ring_of_g = nullptr;  ///< [ring, kTalkChannels]
  A* products = nullptr;   ///< [2 rows]: added to, <g of the window, x at edge>
  bool streaming = false;  ///< stores to grad_x go past the caches
  int64_t next = 0;        ///< so far from the last kTalkChannels channels on lies
                           ///< what will be needed next

  void advance(int64_t count) {
    g += count;
    x += count;
    grad_x = grad_x == nullptr ? nullptr : grad_x + count;
    channels -= count;
  }
};

template <class A>
struct TalkExtremes {
  A min = 0;
  A max = 0;
};

/// x and y of type S, or offsets of that type; sums of type A.
template <class S, class A>
struct TalkKernels {
  /// The least and the most of 0 and all numbers; NaN is none.
  TalkExtremes<A> (*extremes)(const S* values, int64_t count);
  /// Writes whole vectors: up to kTalkSpare windows too many.
  void (*windows)(const TalkOffsets<S>& offsets, TalkWindow<A>* out);
  /// False, and y is garbage, where an input is not finite: prefix sums would
  /// spread it over everything behind it.
  bool (*forward)(const TalkTile<S, A>& tile);
};

/// Returns false, and grad_x is garbage, where a gradient is not finite. By itself: programs that
/// make no backward passes are without it.
template <class S, class A>
using TalkColumnsBackward = bool (*)(const TalkGradTile<S, A>& tile);

template <class S, class A>
const TalkKernels<S, A>& talk_kernels(Isa isa);
template <class S, class A>
TalkColumnsBackward<S, A> talk_columns_backward(Isa isa);

}  // namespace seqconv::internal::kernels
