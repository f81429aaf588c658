#include "seqconv/kernels/talk.h"

#include "kernels/talk_window.h"
#include "kernels/tiles.h"

/// Each tile owns 64 rows of grad_x and adds up all windows of the
/// neighbourhood that reach into them, as a difference array. Windows are
/// clipped to the tile and what falls outside goes to a spare row, so that
/// there are no branches, no atomics and no shared writes.
namespace seqconv::kernels {
namespace {

/// How far the windows of one head of one sequence reach from their position.
struct Reach {
  int64_t left = 0;
  int64_t right = 0;
};

template <class S, class O, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(
      const TalkBackward<S, O>& args,
      const Windows<O>& source,
      Isa isa)
      : args_(args),
        source_(source),
        rows_(row_ops<S, A>(isa)),
        offset_rows_(row_ops<O, A>(isa)),
        tile_(tile_ops<A>(isa)),
        pitch_(tile_pitch<A>(args.shape.head_channels())),
        steps_((kTalkRows + 1) * pitch_),
        edges_((kTalkRows + 1) * pitch_),
        out_(kTalkRows * pitch_),
        left_(kTalkRows),
        right_(kTalkRows) {}

  void run(int64_t b, int64_t tile, int64_t h, const Reach& reach) {
    const int64_t T = args_.shape.steps;
    const int64_t first = tile * kTalkRows,
                  rows = std::min(kTalkRows, T - first);
    const int64_t valid = valid_rows(args_.lengths, b, T);
    const int64_t real = std::clamp<int64_t>(valid - first, 0, rows);
    zero_rows(
        head_plane(args_.grad_x, args_.shape, b, h, valid),
        first + real,
        rows - real);
    left_.fill_zero(kTalkRows);
    right_.fill_zero(kTalkRows);
    if (real > 0) {
      input_gradient(b, h, first, real, valid, reach);
      offset_gradient(b, h, first, real, valid);
    }
    const int64_t at = (b * T + first) * args_.shape.heads + h;
    const int64_t H = args_.shape.heads;
    offset_rows_
        .store(left_.data(), 1, rows, 1, args_.grad_offset_left + at, H);
    if (args_.grad_offset_right != nullptr)
      offset_rows_
          .store(right_.data(), 1, rows, 1, args_.grad_offset_right + at, H);
  }

 private:
  /// grad_x of rows [first, first + rows) from every window that touches them.
  void input_gradient(
      int64_t b,
      int64_t h,
      int64_t first,
      int64_t rows,
      int64_t valid,
      const Reach& reach) {
    const int64_t from = std::max<int64_t>(0, first - reach.right);
    const int64_t to = std::min(valid, first + rows + reach.left);
    clip_windows(b, h, from, to, first, rows, valid);
    grad_.reserve((to - from) * pitch_);
    const auto grad_y = head_plane(args_.grad_y, args_.shape, b, h, valid);
    const auto grad_x = head_plane(args_.grad_x, args_.shape, b, h, valid);
    for (int64_t c = 0; c < grad_y.width; c += kTileChannels<A>) {
      const int64_t width = std::min(grad_y.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      stage(
          rows_,
          grad_y.channels(c, width),
          from,
          to - from,
          grad_.data(),
          pitch);
      steps_.fill_zero((rows + 1) * pitch);
      edges_.fill_zero((rows + 1) * pitch);
      tile_.scatter_windows(
          {windows_.data(), to - from, pitch},
          grad_.data(),
          steps_.data(),
          edges_.data());
      tile_.finish_scatter(
          steps_.data(),
          edges_.data(),
          pitch,
          rows,
          scale(),
          out_.data());
      rows_.store(
          out_.data(),
          pitch,
          rows,
          width,
          grad_x.data + first * grad_x.stride + c,
          grad_x.stride);
    }
  }

  /// Windows of positions [from, to) in rows of the tile. Borders outside move
  /// to its ends; weighted rows outside move to the spare row `rows`.
  void clip_windows(
      int64_t b,
      int64_t h,
      int64_t from,
      int64_t to,
      int64_t first,
      int64_t rows,
      int64_t valid) {
    windows_.clear();
    for (int64_t t = from; t < to; ++t)
      windows_.push_back(source_.at(b, h, t, valid));
    shift_windows(windows_, first);
    for (TileWindow<A>& w : windows_) {
      w.begin = std::clamp<int64_t>(w.begin, 0, rows);
      w.end = std::clamp<int64_t>(w.end, 0, rows);
      w.left = w.left < 0 || w.left >= rows ? rows : w.left;
      w.right = w.right < 0 || w.right >= rows ? rows : w.right;
      if (w.begin == w.end)
        w.begin = w.end = rows;
    }
  }

  /// d out / d left = max_left * x[border] / window where the border is
  /// fractional, else 0; on the right likewise.
  void offset_gradient(
      int64_t b,
      int64_t h,
      int64_t first,
      int64_t rows,
      int64_t valid) {
    const RowSpan<A> span =
        tile_windows(source_, b, h, first, rows, valid, windows_);
    const int64_t reach = span.end - span.begin;
    x_.reserve(reach * pitch_);
    grad_.reserve(rows * pitch_);
    const auto x = head_plane(args_.x, args_.shape, b, h, valid);
    const auto grad_y = head_plane(args_.grad_y, args_.shape, b, h, valid);
    for (int64_t c = 0; c < x.width; c += kTileChannels<A>) {
      const int64_t width = std::min(x.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      stage(rows_, x.channels(c, width), span.begin, reach, x_.data(), pitch);
      stage(rows_, grad_y.channels(c, width), first, rows, grad_.data(), pitch);
      tile_.edge_products(
          {windows_.data(), rows, pitch},
          grad_.data(),
          x_.data(),
          left_.data(),
          right_.data());
    }
    const A left = static_cast<A>(args_.shape.max_left) * scale();
    const A right = static_cast<A>(args_.shape.max_right) * scale();
    for (int64_t t = 0; t < rows; ++t) {
      const TileWindow<A>& w = windows_[static_cast<size_t>(t)];
      left_.data()[t] = w.left_weight == 0 ? A(0) : left_.data()[t] * left;
      right_.data()[t] = w.right_weight == 0 ? A(0) : right_.data()[t] * right;
    }
  }

  A scale() const { return A(1) / static_cast<A>(args_.shape.window()); }

  const TalkBackward<S, O>& args_;
  const Windows<O>& source_;
  const RowOps<S, A>& rows_;
  const RowOps<O, A>& offset_rows_;
  const TileOps<A>& tile_;
  int64_t pitch_;
  std::vector<TileWindow<A>> windows_;
  Scratch<A> x_;
  Scratch<A> grad_;
  Scratch<A> steps_;
  Scratch<A> edges_;
  Scratch<A> out_;
  Scratch<A> left_;
  Scratch<A> right_;
};

/// The furthest reach of every head of every sequence, [B, H].
template <class O>
std::vector<Reach> all_reaches(
    const TalkShape& shape,
    const int64_t* lengths,
    const Windows<O>& source,
    const Execution& run) {
  std::vector<Reach> reaches(static_cast<size_t>(shape.batch * shape.heads));
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(shape.steps * 16),
      [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          Reach& reach = reaches[static_cast<size_t>(item)];
          const int64_t b = item / shape.heads, h = item % shape.heads;
          const int64_t valid = valid_rows(lengths, b, shape.steps);
          for (int64_t t = 0; t < valid; ++t) {
            const RowSpan span(source.at(b, h, t, valid));
            reach.left = std::max(reach.left, t - span.begin);
            reach.right = std::max(reach.right, span.end - t);
          }
        }
      });
  return reaches;
}

}  // namespace

template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const Windows<O> source(
      shape.steps,
      shape.heads,
      shape.max_left,
      shape.max_right,
      args.offset_left,
      args.offset_right);
  const std::vector<Reach> reaches =
      all_reaches(shape, args.lengths, source, run);
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * shape.heads,
      grain_for(kTalkRows * (shape.head_channels() * 10 + 32)),
      [&](int64_t begin, int64_t end) {
        BackwardTile<S, O> work(args, source, run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, shape.heads);
          const auto pair = at.batch * shape.heads + at.head;
          work.run(
              at.batch,
              at.tile,
              at.head,
              reaches[static_cast<size_t>(pair)]);
        }
      });
}

#define SEQCONV_INSTANTIATE(S, O) \
  template void talk_backward(const TalkBackward<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
