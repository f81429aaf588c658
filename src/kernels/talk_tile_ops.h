#pragma once

#include <bit>
#include <cstdint>

#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/isa.h"

/// The inner loops of TaLK, compiled for each instruction set in
/// talk_tile_ops.cpp.
namespace seqconv::kernels {

/// A window as a difference of prefix sums S[i] = x[0] + ... + x[i-1]:
///   S[high] + right * (S[high_edge] - S[high])
///     - S[low] - left * (S[low_edge] - S[low]);
/// low_edge is low - 1 where left > 0, else low; high_edge likewise. Borders
/// are places in a buffer (TalkPlaces). All of it lies together, and the first
/// four come with one load of a vector.
template <class A>
struct TalkWindow {
  int32_t low, low_edge, high, high_edge;
  A left, right;  ///< in [0, 1), or NaN
  /// Positions of the inputs that the fractions are of, from window 0's
  /// position on; of any input where there is no fraction. 0 if not wanted.
  int32_t left_input, right_input;
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

/// Distances from positions t to the borders of their windows, those of head h
/// from h * pitch on; borders outside [0, valid) move to its ends.
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
  bool inputs = false;  ///< whether TalkWindow's inputs are wanted
};

/// Where row i, a position minus `origin` that is clipped to [0, last], stands
/// in a buffer: at i mod `ring` * `pitch`, both powers of two.
struct TalkPlaces {
  int64_t origin = 0;
  int64_t last = 0;
  int64_t ring = 1;
  int64_t pitch = 1;

  bool operator==(const TalkPlaces&) const = default;
};

/// Borders of the window at t lie in [t - left, t + right].
struct TalkReach {
  int64_t left = 0;
  int64_t right = 1;

  /// Rows in which `count` windows in a row find their borders: few enough to
  /// stay in the first-level cache.
  constexpr int64_t rows(int64_t count) const { return left + right + count; }
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

/// Windows that step into a gradient before rows of it are finished.
inline constexpr int64_t kTalkChunk = 16;

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
  int64_t ring = 1;      ///< as TalkPlaces::ring; with kTalkLanes windows > end
  A* sums = nullptr;     ///< [ring, talk_pitch()]
  S* y = nullptr;
  bool streaming = false;  ///< stores to y go past the caches
  /// Inputs, and outputs if not streaming, so many elements further on come
  /// next: if streaming or `fetches`, from memory.
  int64_t next = 0;
  bool fetches = false;
};

/// Windows that may reach the `span` inputs of a tile; borders are clipped to
/// those. Row 0 of the windows is the first input, window 0 that of position
/// `first`, counted from it.
template <class S, class A>
struct TalkGradTile {
  const TalkWindow<A>* windows = nullptr;
  int64_t lanes = 1;  ///< as TalkTile::lanes, but not two
  int64_t first = 0;  ///< not positive
  int64_t rows = 0;
  int64_t channels = 0;
  A scale = 1;
  const S* g = nullptr;  ///< of window 0
  int64_t stride = 0;    ///< of g and x
  int64_t span = 0;
  int64_t behind = 0;  ///< windows from t on touch no row before t - behind
  int64_t ring = 1;    ///< as TalkPlaces::ring; with kTalkLanes windows > span
  /// As TalkTile::sums; but for kTalkLanes windows, zeros before and after.
  A* steps = nullptr;
  S* grad_x = nullptr;
  int64_t grad_x_stride = 0;
  /// Inputs and outputs so many elements further on will be needed next.
  int64_t next = 0;
  bool streaming = false;  ///< stores to grad_x go past the caches
  /// Offsets (not with kTalkLanes windows): <g[t], x at the fractional borders
  /// of t> is added to left[t] and right[t], 0 <= t < span; 0 at whole borders.
  const S* x = nullptr;  ///< of the position of window 0
  int64_t x_next = 0;    ///< as `next`; if not streaming, some rows
  A* left = nullptr;
  A* right = nullptr;
};

/// <g[t], x at the fractional borders of window t>, 0 at whole borders.
template <class S, class A>
struct TalkEdgeTile {
  const TalkWindow<A>* windows = nullptr;
  int64_t rows = 0;
  int64_t channels = 0;
  const S* g = nullptr;
  int64_t stride = 0;    ///< of g and x
  const S* x = nullptr;  ///< of the position of window 0
  A* left = nullptr;     ///< [rows], added to
  A* right = nullptr;
};

template <class A>
struct TalkExtremes {
  A least = 0;
  A most = 0;
};

/// x and y of type S, or offsets of that type; sums of type A.
template <class S, class A>
struct TalkOps {
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
  /// Whether forward() takes tiles with two windows a position; they are never
  /// streaming.
  bool pairs;
  /// False, and y is garbage, where an input is not finite: prefix sums would
  /// spread it over everything behind it.
  bool (*forward)(const TalkTile<S, A>& tile);
  /// False, and grad_x is garbage, where a gradient is not finite.
  bool (*gradient)(const TalkGradTile<S, A>& tile);
  void (*edge_products)(const TalkEdgeTile<S, A>& tile);
};

template <class S, class A>
const TalkOps<S, A>& talk_ops(Isa isa);

}  // namespace seqconv::kernels
