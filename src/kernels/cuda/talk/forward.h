#pragma once

#include "kernels/cuda/talk/tile.h"

/// TaLK forward: sums of the rows that a tile's windows touch, and no others,
/// in shared memory. They start anew at every multiple of kTalkSegment, so that
/// neither the error nor a single bit of a window depends on what else a tile
/// looks at.
namespace seqconv::internal::kernels::cuda {

/// The segment of row r >= 0: unsigned, or a shift would need corrections.
SEQCONV_HD int segment_of(int r) {
  return static_cast<int>(static_cast<unsigned>(r) / kTalkSegment);
}

/// A thread's V columns of the sums of segments: of the first 0, 1, ...,
/// kTalkSegment rows of each. Vectors of more than 16 bytes lie in parts, one
/// half of a row each, so that neighbouring threads meet different banks.
template <int V>
class TalkSums {
 public:
  SEQCONV_DEVICE TalkSums(float* memory, int pitch, int column)
      : memory_(reinterpret_cast<Pack<float, kPart>*>(memory) + column),
        pitch_(pitch / kPart),
        part_pitch_(pitch / V) {}

  /// The entry of the rows before row r in its segment; the next one has
  /// row r too.
  SEQCONV_DEVICE int before(int r) const { return (r + segment_of(r)) * pitch_; }
  SEQCONV_DEVICE int next(int entry) const { return entry + pitch_; }
  SEQCONV_DEVICE int total(int segment) const {
    return (segment * (kTalkSegment + 1) + kTalkSegment) * pitch_;
  }
  SEQCONV_DEVICE void load(int entry, float (&to)[V]) const {
    SEQCONV_UNROLL
    for (int v = 0; v < V; v += kPart) {
      const Pack<float, kPart> part = memory_[entry + v / kPart * part_pitch_];
      unroll<kPart>([&](int i) { to[v + i] = part.v[i]; });
    }
  }
  SEQCONV_DEVICE void store(int entry, const float (&from)[V]) const {
    SEQCONV_UNROLL
    for (int v = 0; v < V; v += kPart) {
      Pack<float, kPart> part;
      unroll<kPart>([&](int i) { part.v[i] = from[v + i]; });
      memory_[entry + v / kPart * part_pitch_] = part;
    }
  }

 private:
  static constexpr int kPart = min(V, 4);

  Pack<float, kPart>* memory_;
  int pitch_;
  int part_pitch_;
};

/// One phase: the sums of a chunk's rows [origin, origin + rows), a thread for
/// a segment of V channels; the sum before row `rows` is there too.
template <int V, class S, class Block>
SEQCONV_DEVICE void scan_rows(
    Block& block,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const Chunk& chunk,
    int origin,
    int rows) {
  const int segments = segment_of(rows) + 1;
  const TalkMemory memory(task.plan, block.shared());
  const S* const first = task.x + task.element(tile.b, origin, chunk.first);
  block.each([&](int thread) {
    const Place<V> place(task.plan, thread);
    if (place.is_idle(chunk.width))
      return;
    const TalkSums<V> sums(memory.sums, task.plan.width, place.column);
    for (int s = place.row; s < segments; s += place.stride) {
      const int begin = s * kTalkSegment;
      const int count = min(kTalkSegment, rows - begin);
      const S* const from = row_at(first + place.channel(), begin, task.row_bytes);
      float sum[V] = {};
      int entry = sums.before(begin);
      sums.store(entry, sum);
      // Several loads under way before the first is used, none of them behind
      // a condition: rows after the last repeat it, in entries never read.
      constexpr int kAtOnce = 8;
      static_assert(kTalkSegment % kAtOnce == 0);
      SEQCONV_NO_UNROLL
      for (int r0 = 0; r0 < count; r0 += kAtOnce) {
        Pack<S, V> in[kAtOnce];
        unroll<kAtOnce>([&](int i) {
          in[i] = load_pack<S, V>(row_at(from, min(r0 + i, count - 1), task.row_bytes));
        });
        unroll<kAtOnce>([&](int i) {
          float row[V];
          widen_pack<V>(in[i], row);
          unroll<V>([&](int v) { sum[v] += row[v]; });
          entry = sums.next(entry);
          sums.store(entry, sum);
        });
      }
    }
  });
}

/// The window's sum out of those of its rows.
template <int V>
SEQCONV_DEVICE void window_by_sums(
    const TalkWindow& w, const TalkSums<V>& sums, int origin, float (&out)[V]) {
  const int first = w.left_row() - origin, last = w.end - origin;
  // The row of a share lies between two entries; without a share they are one.
  const int end = sums.before(last), begin = sums.before(first);
  float upper[V], lower[V];
  sums.load(end, out);
  sums.load(w.right > 0 ? sums.next(end) : end, upper);
  unroll<V>([&](int v) { out[v] += w.right * (upper[v] - out[v]); });
  sums.load(w.left > 0 ? sums.next(begin) : begin, upper);
  sums.load(begin, lower);
  unroll<V>([&](int v) { out[v] = out[v] - upper[v] + w.left * (upper[v] - lower[v]); });
  const auto add_totals = [&](int from, int to, float sign) {
    SEQCONV_NO_UNROLL
    for (int s = from; s < to; ++s) {
      sums.load(sums.total(s), upper);
      unroll<V>([&](int v) { out[v] += sign * upper[v]; });
    }
  };
  add_totals(segment_of(first), segment_of(last), 1.0f);
  add_totals(segment_of(last), segment_of(first), -1.0f);
}

/// The same row by row, added to `out`: for windows that reach further than a
/// block can keep.
template <int V, class S>
SEQCONV_DEVICE void window_by_rows(
    const TalkWindow& w, const S* rows, int row_bytes, float (&out)[V]) {
  const auto add = [&](int r, float share) { add_wide<V>(row_at(rows, r, row_bytes), share, out); };
  SEQCONV_NO_UNROLL
  for (int r = w.begin; r < w.end; ++r)
    add(r, 1.0f);
  SEQCONV_NO_UNROLL
  for (int r = w.end; r < w.begin; ++r)
    add(r, -1.0f);
  add(w.left_row(), w.left);
  add(w.right_row(), w.right);
}

/// Part of a phase: a thread's outputs of a chunk. `origin` is negative where
/// sums are not there.
template <int V, class S>
SEQCONV_DEVICE void write_windows(
    int thread,
    const TalkTask<S>& task,
    const TalkTile& tile,
    const Chunk& chunk,
    const TalkMemory& memory,
    int origin) {
  const Place<V> place(task.plan, thread);
  if (place.is_idle(chunk.width))
    return;
  const int c = place.channel();
  const int real = tile.real(task), rows = tile.rows(task);
  const int h = head_of(task, tile, c);
  const TalkSums<V> sums(memory.sums, task.plan.width, place.column);
  const int64_t at = task.element(tile.b, 0, chunk.first + c);
  S* out = row_at(task.out + at, tile.first + place.row, task.row_bytes);
  SEQCONV_NO_UNROLL
  for (int r = place.row; r < rows; r += place.stride) {
    float sum[V] = {};
    if (r < real) {
      const TalkWindow w = memory.windows[r * tile.heads + h];
      if (origin >= 0)
        window_by_sums<V>(w, sums, origin, sum);
      else
        window_by_rows<V>(w, task.x + at, task.row_bytes, sum);
    }
    unroll<V>([&](int v) { sum[v] *= task.scale; });
    store_narrow<V>(out, sum);
    out = row_at(out, place.stride, task.row_bytes);
  }
}

template <int V>
struct TalkForwardBody {
  static constexpr int kMinBlocks = 6;
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const TalkTask<S>& task) {
    const TalkTile tile = tile_of(task, block.index());
    const TalkMemory memory(task.plan, block.shared());
    const int real = tile.real(task);
    const TalkSpan span = join_spans(block, memory.spans, [&](int thread) {
      TalkSpan mine;
      each_window(task, tile, tile.first, real, thread, [&](int n, int, const TalkWindow& w) {
        memory.windows[n] = w;
        mine.add(w);
      });
      return mine;
    });
    int origin = -1;
    if (real > 0) {
      const int first = segment_of(span.begin) * kTalkSegment;
      if (span.end - first <= task.plan.capacity)
        origin = first;
    }
    for (int i = 0; i < task.plan.chunks; ++i) {
      const Chunk chunk(task, tile, i);
      if (origin >= 0)
        scan_rows<V>(block, task, tile, chunk, origin, span.end - origin);
      block.each([&](int thread) { write_windows<V>(thread, task, tile, chunk, memory, origin); });
    }
  }
};

}  // namespace seqconv::internal::kernels::cuda
