#include <vector>

#include "kernels/talk_tiles.h"

/// Each tile owns some rows of grad_x and adds up all windows of the
/// neighbourhood that reach into them, as a difference array. Windows are
/// clipped to the tile, so that there are no atomics and no shared writes. The
/// gradients of the offsets of its own windows are made in the same pass.
namespace seqconv::kernels {
namespace {

/// The gradient of each input as a sum over the windows that hold it, for
/// gradients that are not finite. Places are rows of the tile.
template <class S, class A>
void spread_windows_singly(const TalkGradTile<S, A>& tile) {
  for (int64_t c = 0; c < tile.channels; ++c)
    for (int64_t s = 0; s < tile.span; ++s) {
      A sum = 0;
      for (int64_t t = 0; t < tile.rows; ++t) {
        const TalkWindow<A>& w =
            tile.windows[talk_entry(tile.lanes, /*second=*/0, t, c)];
        const A g = widen(tile.g[t * tile.stride + c]);
        if (s >= w.low && s < w.high)
          sum += g;
        if (s >= w.high && s < w.low)
          sum -= g;
        if (w.left > 0 && s == w.low_edge && w.low_edge < w.low)
          sum += w.left * g;
        if (w.right > 0 && s == w.high && w.high < w.high_edge)
          sum += w.right * g;
        if ((w.left != w.left || w.right != w.right) && s >= w.low &&
            s < w.high)
          sum += w.left + w.right;
      }
      tile.grad_x[s * tile.grad_x_stride + c] = narrow<S>(sum * tile.scale);
    }
}

/// Gradients of offsets [B, T, H], kept until those of some heads of a tile can
/// be written together: those of one head stand far apart.
template <class O, class A>
class OffsetGradients {
 public:
  OffsetGradients(const TalkShape& shape, O* left, O* right, Isa isa)
      : shape_(shape),
        left_(left),
        right_(right),
        ops_(talk_ops<O, A>(isa)),
        sums_(2 * kTogether * kTalkRows) {}

  struct Sums {
    A* left;
    A* right;
  };
  /// Zeros for the positions of a head, which has its place in the tensors
  /// until begin() or write() is called again.
  Sums begin(const TalkBlock& block, int64_t head) {
    if (block != block_ || head != first_ + heads_ || heads_ == kTogether) {
      write();
      block_ = block;
      first_ = head;
    }
    A* const left = sums_.data() + heads_ * kTalkRows;
    A* const right = left + kTogether * kTalkRows;
    std::fill_n(left, block.rows.count, A(0));
    std::fill_n(right, block.rows.count, A(0));
    ++heads_;
    return {left, right};
  }

  void write() {
    write_to(left_, sums_.data(), shape_.max_left);
    if (right_ != nullptr)
      write_to(right_, sums_.data() + kTogether * kTalkRows, shape_.max_right);
    heads_ = 0;
  }

 private:
  static constexpr int64_t kTogether = 16;

  void write_to(O* grad, const A* sums, int64_t most) const {
    const int64_t H = shape_.heads;
    const int64_t row = block_.batch * shape_.steps + block_.rows.first;
    ops_.offset_gradients(
        sums,
        kTalkRows,
        static_cast<A>(most) * talk_scale<A>(shape_),
        {grad + row * H + first_, block_.rows.count, heads_, H});
  }

  const TalkShape& shape_;
  O* const left_;
  O* const right_;
  const TalkOps<O, A>& ops_;
  Scratch<A> sums_;
  TalkBlock block_;
  int64_t first_ = 0;
  int64_t heads_ = 0;
};

/// Rows of x that are fetched before windows reach them.
constexpr int64_t kRowsAhead = 8;

template <class S, class O, class A = AccumulatorOf<S>>
class BackwardTile {
 public:
  BackwardTile(
      const TalkBackward<S, O>& args,
      const std::vector<TalkReach>& reaches,
      const Execution& run)
      : args_(args),
        reaches_(reaches),
        windows_(args.shape, args.offset_left, args.offset_right, run.isa),
        ops_(talk_ops<S, A>(run.isa)),
        offsets_(
            args.shape,
            args.grad_offset_left,
            args.grad_offset_right,
            run.isa),
        streaming_(cache_plan(
                       run,
                       args.shape,
                       args.grad_x,
                       {.read = 2 * args.shape.channels, .light = true})
                       .streams) {}

  /// grad_x of a tile of some strips, which are one head or have several each,
  /// and the gradients of their offsets.
  void run(const TalkStrips& strips, int64_t b, int64_t part, int64_t index) {
    const TalkRows rows = talk_rows_of(args_.shape, args_.lengths, b, index);
    Sums sums = {};
    if (!strips.narrow())
      sums = offsets_.begin({b, rows}, part);
    for (int64_t i = 0; i < strips.of_part(); ++i)
      input_gradient(strips.get(b, part * strips.of_part() + i), rows, sums);
    if (strips.narrow())
      for (int64_t h = 0; h < args_.shape.heads; ++h)
        narrow_offset_gradient(b, h, rows);
  }

  /// To be called after the last tile.
  void finish() { offsets_.write(); }

 private:
  using Sums = typename OffsetGradients<O, A>::Sums;

  void input_gradient(
      const TalkStrip& strip,
      const TalkRows& rows,
      const Sums& sums) {
    const int64_t T = args_.shape.steps, C = args_.shape.channels;
    const int64_t first = rows.first, span = rows.real();
    const int64_t at = strip.batch * T * C + strip.channel;
    S* const grad_x = args_.grad_x + at;
    zero_rows(grad_x, C, strip.channels, first + span, first + rows.count);
    if (span == 0)
      return;
    const TalkReach& reach = reaches_[static_cast<size_t>(strip.batch)];
    const int64_t from = std::max<int64_t>(0, first - reach.right);
    const int64_t to = std::min(rows.valid, first + span + reach.left);
    const int64_t next = next_strip(args_.shape, strip, rows.count);
    TalkGradTile<S, A> tile = {
        .lanes = strip.lanes,
        .first = from - first,
        .rows = to - from,
        .channels = strip.channels,
        .scale = talk_scale<A>(args_.shape),
        .g = args_.grad_y + at + from * C,
        .stride = C,
        .span = span,
        .behind = reach.left,
        .ring = talk_ring(
            strip.narrow() ? span + 1
                           : std::min(span + 1, reach.rows(kTalkChunk))),
        .grad_x = grad_x + first * C,
        .grad_x_stride = C,
        .next = next,
        .streaming = streaming_,
        .x = args_.x + at + from * C,
        .x_next = streaming_ ? next : (reach.right + kRowsAhead) * C,
        .left = sums.left,
        .right = sums.right};
    TalkPlaces places = {
        .origin = first,
        .last = span,
        .ring = tile.ring,
        .pitch = talk_pitch(strip.lanes)};
    const int64_t elements = places.ring * places.pitch;
    if (steps_.reserve(elements))
      steps_.fill_zero(elements);
    tile.steps = steps_.data();
    const TalkRows reaching = {from, to - from, rows.valid};
    tile.windows = windows_.make(strip, reaching, places, /*inputs=*/true);
    if (ops_.gradient(tile))
      return;
    places.ring = talk_ring(span + 1);
    places.pitch = 1;
    tile.windows = windows_.make(strip, reaching, places);
    spread_windows_singly(tile);
  }

  /// Gradients of the offsets of a head narrower than a vector: max_left *
  /// x[border] / window where the border is fractional, else 0; on the right
  /// likewise.
  void narrow_offset_gradient(int64_t b, int64_t h, const TalkRows& rows) {
    const TalkShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const Sums sums = offsets_.begin({b, rows}, h);
    const int64_t real = rows.real();
    if (real > 0) {
      const int64_t at = (b * shape.steps + rows.first) * C + h * R;
      const TalkStrip strip{.batch = b, .channel = h * R, .channels = R};
      ops_.edge_products(
          {.windows = windows_.make(
               strip,
               {rows.first, real, rows.valid},
               {},
               /*inputs=*/true),
           .rows = real,
           .channels = R,
           .g = args_.grad_y + at,
           .stride = C,
           .x = args_.x + at,
           .left = sums.left,
           .right = sums.right});
    }
  }

  const TalkBackward<S, O>& args_;
  const std::vector<TalkReach>& reaches_;
  WindowMaker<O> windows_;
  const TalkOps<S, A>& ops_;
  OffsetGradients<O, A> offsets_;
  const bool streaming_;
  Scratch<A> steps_;
};

}  // namespace

template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const TalkStrips strips(shape);
  const std::vector<TalkReach> reaches = talk_reaches(
      shape,
      args.offset_left,
      args.offset_right,
      args.lengths,
      run);
  const int64_t tiles = ceil_div(shape.steps, kTalkRows);
  run.parallel_for(
      shape.batch * tiles * strips.parts(),
      grain_for(kTalkRows * (kTalkChannels * strips.of_part() * 10 + 32)),
      [&](int64_t begin, int64_t end) {
        BackwardTile<S, O> work(args, reaches, run);
        for (int64_t item = begin; item < end; ++item) {
          const TileIndex at(item, tiles, strips.parts());
          work.run(strips, at.batch, at.group, at.tile);
        }
        work.finish();
      });
}

#define SEQCONV_INSTANTIATE(S, O) \
  template void talk_backward(const TalkBackward<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
