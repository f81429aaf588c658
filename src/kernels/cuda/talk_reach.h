#pragma once

#include "kernels/cuda/talk_plan.h"

/// Which windows touch a tile of TaLK's grad_x.
namespace seqconv::kernels::cuda {

/// How far the windows of a tile reach from their positions: [B, tiles, H, 2].
/// A block for every tile; heads 32 at a time, as many threads to each as there
/// are.
template <class S, class Block>
SEQCONV_DEVICE void talk_reach_body(Block& block, const TalkTask<S>& task) {
  const TalkTile tile(task, block.index());
  auto* const spans = shared_at<TalkSpan>(block.shared(), 0);
  TalkRange range = tile.own_positions();
  for (; range.head < task.all_heads; range.head += range.heads) {
    range.heads = min(kWarp, task.all_heads - range.head);
    block.each([&](int thread) {
      TalkSpan reach = {0, 0};  // relative to the position
      each_window<4>(
          task,
          range,
          thread,
          block.threads(),
          [&](int, int r, const auto& w) {
            TalkSpan span;
            span.add(w);
            reach.add(span.begin - range.first - r, span.end - range.first - r);
          });
      spans[thread] = reach;
    });
    block.each([&](int thread) {
      if (thread >= range.heads)
        return;
      TalkSpan reach = spans[thread];
      const int lanes = block.threads() / range.heads;
      for (int lane = 1; lane < lanes; ++lane)
        reach.add(
            spans[lane * range.heads + thread].begin,
            spans[lane * range.heads + thread].end);
      int32_t* const to = task.reach +
          ((tile.b * task.plan.tiles + tile.tile) * task.all_heads +
           range.head + thread) *
              2;
      to[0] = -reach.begin;
      to[1] = reach.end;
    });
  }
}

/// One phase: positions [begin, end) whose windows may reach into the tile.
template <class S, class Block>
SEQCONV_DEVICE TalkSpan
find_neighbours(Block& block, const TalkTask<S>& task, const TalkTile& tile) {
  const int64_t tiles = task.plan.tiles;
  return join_spans(
      block,
      shared_at<TalkSpan>(block.shared(), task.plan.spans_at),
      [&](int thread) {
        TalkSpan mine;
        const auto heads = static_cast<unsigned>(tile.heads);
        const auto pairs = static_cast<unsigned>(tiles) * heads;
        for (unsigned n = static_cast<unsigned>(thread); n < pairs;
             n += static_cast<unsigned>(block.threads())) {
          const unsigned k = n / heads;
          const int64_t pair = ((tile.b * tiles + k) * task.all_heads +
                                tile.head + (n - k * heads)) *
              2;
          const int first = static_cast<int>(k) * kTalkTile;
          const int from = max(first, tile.first - task.reach[pair + 1] + 1);
          const int to =
              min(min(first + kTalkTile, tile.valid),
                  tile.first + kTalkTile + task.reach[pair]);
          if (from < to)
            mine.add(from, to);
        }
        return mine;
      });
}

}  // namespace seqconv::kernels::cuda
