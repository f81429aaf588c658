#pragma once

#include <bit>
#include <cstdint>

#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/isa.h"

/// The inner loops of TaLK, compiled for each instruction set in
/// talk_kernels.cpp.
namespace seqconv::kernels {

/// A window as a difference of prefix sums S[i] = x[0] + ... + x[i-1]:
///   S[behind-1] + right * (S[behind] - S[behind-1])
///     - S[low] - left * (S[low-1] - S[low]).
/// low and behind are places in a buffer (TalkPlaces), and come with one load.
template <class A>
struct TalkWindow {
  int32_t low, behind;
  A left, right;  ///< in [0, 1), or NaN
};

/// The edges of windows, as what they do to a sum over those windows'
/// gradients that goes from row to row. That of window i begins at row
/// rows[2i]: it is added to the sums of later rows, and parts[2i] of it to that
/// row's. At row rows[2i+1] it ends: it is taken off the sums of later rows,
/// and parts[2i+1] of it, which is not positive, is added to that row's. Both
/// rows are inputs that the window holds, or part of them.
template <class A>
struct TalkEdges {
  int32_t* rows = nullptr;
  A* parts = nullptr;

  /// The part where an edge stands between inputs, 2i or 2i+1.
  static constexpr A whole(int64_t edge) { return edge % 2 == 0 ? A(1) : A(0); }
};

/// Offsets of all heads at some positions, [rows, heads].
template <class O>
struct TalkOffsets {
  const O* data = nullptr;
  int64_t rows = 0;
  int64_t heads = 0;
};

/// Where gradients of the offsets of some heads are written; those of all heads
/// stand `stride` apart.
template <class O>
struct TalkOffsetGradients {
  O* data = nullptr;
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t stride = 0;
};

/// Distances from positions t to the edges of their windows, those of head h
/// from h * pitch on; edges outside [0, valid) move to its ends.
template <class A>
struct TalkDistances {
  const A* left = nullptr;   ///< to the left, in tokens
  const A* right = nullptr;  ///< null: all 0
  int64_t first = 0;         ///< t of entries 0 .. lanes-1; then t + 1, ...
  int64_t lanes = 1;         ///< entries of one position, a power of two
  int64_t count = 0;         ///< entries of a head
  int64_t heads = 1;
  int64_t pitch = 0;  ///< a multiple of kTalkLanes
  int64_t valid = 0;
};

/// Where row i, a position minus `origin`, stands in a buffer: at i mod `ring`
/// * `pitch`, both powers of two.
struct TalkPlaces {
  int64_t origin = 0;
  int64_t ring = 1;
  int64_t pitch = 1;

  bool operator==(const TalkPlaces&) const = default;
};

/// Some positions of a sequence.
struct TalkRange {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const TalkRange&) const = default;
};

/// Inputs of the window at t lie in [t - left, t + right).
struct TalkReach {
  int64_t left = 0;
  int64_t right = 1;

  /// Positions whose windows may hold an input, and so many inputs that a
  /// window may hold.
  constexpr int64_t rows() const { return left + right; }
};

/// Channels of a tile in which every channel has windows of its own.
inline constexpr int64_t kTalkLanes = 16;
/// Channels that share their windows, at most.
inline constexpr int64_t kTalkChannels = 64;

/// Elements between rows of the sums of a tile with `lanes` windows a position:
/// one, two of kTalkChannels channels each, or kTalkLanes.
constexpr int64_t talk_pitch(int64_t lanes) {
  return lanes == kTalkLanes ? kTalkLanes : lanes * kTalkChannels;
}

/// TalkPlaces::ring for so many rows.
constexpr int64_t talk_ring(int64_t rows) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

/// Which of the windows of a tile a channel has in row t; `second` as in
/// TalkTile.
constexpr int64_t
talk_entry(int64_t lanes, int64_t second, int64_t t, int64_t channel) {
  return lanes == kTalkLanes ? t * lanes + channel
                             : t + channel / kTalkChannels * second;
}

/// Rows of outputs.
template <class S, class A>
struct TalkTile {
  /// [rows], with kTalkLanes lanes [rows, lanes]
  const TalkWindow<A>* windows = nullptr;
  int64_t lanes = 1;   ///< as for talk_pitch()
  int64_t second = 0;  ///< of two lanes: the windows of the other one, behind
  int64_t rows = 0;
  int64_t channels = 0;  ///< at most talk_pitch(); of two windows exactly
  A scale = 1;
  const S* x = nullptr;  ///< row 0 is row 0 of the windows
  int64_t stride = 0;    ///< of x and y
  int64_t ahead = 0;     ///< windows up to t touch no sum beyond row t + ahead
  int64_t end = 0;       ///< rows of x
  /// As TalkPlaces::ring; with kTalkLanes windows > end + 1.
  int64_t ring = 1;
  /// [ring, talk_pitch()] and one row before. Finite: what a window has no part
  /// of is multiplied by 0.
  A* sums = nullptr;
  S* y = nullptr;
  bool streaming = false;  ///< stores to y go past the caches
  /// Inputs, and outputs if not streaming, so many elements further on come
  /// next: if streaming or `from_memory`, from memory.
  int64_t next = 0;
  bool from_memory = false;
};

/// The `span` inputs of a tile, rows 0 .. span-1, and all windows that may hold
/// some of them.
template <class S, class A>
struct TalkGradTile {
  int64_t lanes = 1;  ///< as TalkTile::lanes, but not two
  /// Of windows `rows`, [rows, lanes]. Their rows are counted from `begin` on.
  TalkEdges<A> edges;
  int64_t rows = 0;
  int64_t own = 0;    ///< the window of the position of row 0
  int64_t begin = 0;  ///< rows [begin, end) have edges; with lanes -1
  int64_t end = 0;    ///< and span + 1
  /// [end - begin]: the first edge at a row; [2 rows]: the one behind it
  /// there. -1 where there is none. Not with kTalkLanes windows.
  const int32_t* first = nullptr;
  const int32_t* next = nullptr;
  int64_t channels = 0;
  A scale = 1;
  const S* g = nullptr;  ///< of window 0
  const S* x = nullptr;  ///< of row `begin`
  int64_t stride = 0;    ///< of g, x and grad_x
  int64_t span = 0;
  int64_t ahead = 0;  ///< edges at row r are of windows < own + r + ahead
  int64_t ring = 1;   ///< a power of two; of windows < own + r + ahead the last
                      ///< `ring` have all edges at row r
  A* ring_of_g = nullptr;  ///< [ring, kTalkChannels]; with kTalkLanes windows
                           ///< [span + 3, kTalkLanes]
  S* grad_x = nullptr;
  /// Rows of g and grad_x so many elements further on will be needed next.
  int64_t next_strip = 0;
  int64_t next_x = 0;      ///< and rows of x
  bool streaming = false;  ///< stores to grad_x go past the caches
  /// Not with kTalkLanes windows: <g[own + t], x at the edge> of edges that
  /// are not whole is added to left[t] and right[t], 0 <= t < span. `products`
  /// is for [2 rows], and whole vectors.
  A* products = nullptr;
  A* left = nullptr;
  A* right = nullptr;
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
  /// distances[h * pitch + t] = tokens * offset of head h at t.
  void (*distances)(
      const TalkOffsets<S>& offsets,
      A tokens,
      int64_t pitch,
      A* distances);
  /// The gradient of head h at t = scale * sums[h * pitch + t]; reads whole
  /// vectors of them.
  void (*offset_gradients)(
      const A* sums,
      int64_t pitch,
      A scale,
      const TalkOffsetGradients<S>& out);
  void (*windows)(
      const TalkDistances<A>& distances,
      const TalkPlaces& places,
      TalkWindow<A>* out);
  /// With rows counted from the range's first and clipped to it. Returns
  /// whether no distance is NaN. Whole vectors are read and written.
  bool (*edges)(
      const TalkDistances<A>& distances,
      const TalkRange& range,
      const TalkEdges<A>& out);
  /// Whether forward() takes tiles with two windows a position; they are never
  /// streaming.
  bool pairs;
  /// False, and y is garbage, where an input is not finite: prefix sums would
  /// spread it over everything behind it.
  bool (*forward)(const TalkTile<S, A>& tile);
  /// False, and grad_x is garbage, where a gradient is not finite.
  bool (*gradient)(const TalkGradTile<S, A>& tile);
};

template <class S, class A>
const TalkKernels<S, A>& talk_kernels(Isa isa);

}  // namespace seqconv::kernels
