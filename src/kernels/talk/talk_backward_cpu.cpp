#include <cmath>
#include <vector>

#include "kernels/talk/talk_edge_maker.h"

/// Each tile owns some rows of grad_x and adds up all windows of the
/// neighbourhood that reach into them, so that there are no atomics and no
/// shared writes. The gradients of the offsets of its own windows are made in
/// the same pass.
namespace seqconv::kernels {
namespace {

/// How much of the input of row s a window holds, of which these are edges;
/// NaN where it holds all of it and an edge is NaN.
template <class A>
A share_of(const TalkEdges<A>& edges, int64_t window, int64_t s) {
  const int32_t* const rows = edges.rows + 2 * window;
  const A* const parts = edges.parts + 2 * window;
  const auto nan = [&](int side) { return std::isnan(parts[side]); };
  const A begun = s < rows[0]   ? A(0)
      : s == rows[0] && !nan(0) ? parts[0]
                                : A(1);
  const A ended = s < rows[1] ? A(0)
      : s > rows[1]           ? A(-1)
      : nan(1)                ? A(0)
                              : parts[1];
  const A share = begun + ended;
  return begun == 1 && ended == 0 ? share + 0 * (parts[0] + parts[1]) : share;
}

/// The gradient of each input as a sum over the windows that hold it, for
/// gradients that are not finite.
template <class S, class A>
void spread_windows_singly(const TalkGradTile<S, A>& tile) {
  for (int64_t c = 0; c < tile.channels; ++c)
    for (int64_t s = 0; s < tile.span; ++s) {
      A sum = 0;
      for (int64_t t = 0; t < tile.rows; ++t) {
        const int64_t window = tile.lanes == 1 ? t : t * tile.lanes + c;
        const A share = share_of(tile.edges, window, s - tile.begin);
        if (share != 0)
          sum += share * widen(tile.g[t * tile.stride + c]);
      }
      tile.grad_x[s * tile.stride + c] = narrow<S>(sum * tile.scale);
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
        ops_(talk_kernels<O, A>(isa)),
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

  bool wanted() const { return left_ != nullptr || right_ != nullptr; }

  void write() {
    if (left_ != nullptr)
      write_to(left_, sums_.data(), shape_.max_left);
    if (right_ != nullptr)
      write_to(right_, sums_.data() + kTogether * kTalkRows, shape_.max_right);
    heads_ = 0;
  }

 private:
  static constexpr int64_t kTogether = 16;

  void write_to(O* grad, const A* sums, int64_t max) const {
    const int64_t H = shape_.heads;
    const int64_t row = block_.batch * shape_.steps + block_.rows.first;
    ops_.offset_gradients(
        sums,
        kTalkRows,
        static_cast<A>(max) * talk_scale<A>(shape_),
        {grad + row * H + first_, block_.rows.count, heads_, H});
  }

  const TalkShape& shape_;
  O* const left_;
  O* const right_;
  const TalkKernels<O, A>& ops_;
  Scratch<A> sums_;
  TalkBlock block_;
  int64_t first_ = 0;
  int64_t heads_ = 0;
};

/// Rows of x that are prefetched before their edges come.
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
        edges_(args.shape, args.offset_left, args.offset_right, run.isa),
        ops_(talk_kernels<S, A>(run.isa)),
        offsets_(
            args.shape,
            args.grad_offset_left,
            args.grad_offset_right,
            run.isa),
        streaming_(
            cache_use(run, args.shape, args.grad_x, 2 * args.shape.channels)
                .streams) {}

  /// grad_x of a tile of some strips, which are one head or have several each,
  /// and the gradients of their offsets.
  void run(const TalkStrips& strips, int64_t b, int64_t part, int64_t index) {
    const TalkRows rows = talk_rows_of(args_.shape, args_.lengths, b, index);
    Sums sums = {};
    if (!strips.narrow())
      sums = offsets_.begin({b, rows}, part);
    if (!strips.narrow() || args_.grad_x != nullptr)
      for (int64_t i = 0; i < strips.of_part(); ++i)
        gradients(strips.get(b, part * strips.of_part() + i), rows, sums);
    if (strips.narrow() && offsets_.wanted())
      for (int64_t h = 0; h < args_.shape.heads; ++h)
        narrow_offset_gradient(b, h, rows);
  }

  /// To be called after the last tile.
  void finish() { offsets_.write(); }

 private:
  using Sums = typename OffsetGradients<O, A>::Sums;

  /// Of the inputs and, but for narrow strips, of the offsets.
  void
  gradients(const TalkStrip& strip, const TalkRows& rows, const Sums& sums) {
    const int64_t C = args_.shape.channels;
    const int64_t at =
        (strip.batch * args_.shape.steps + rows.first) * C + strip.channel;
    const int64_t span = rows.real();
    if (args_.grad_x != nullptr)
      zero_rows(args_.grad_x + at, C, strip.channels, span, rows.count);
    if (span == 0)
      return;
    TalkGradTile<S, A> tile = tile_of(strip, rows);
    tile.channels = strip.channels;
    tile.scale = talk_scale<A>(args_.shape);
    tile.g = args_.grad_y + at - tile.own * C;
    tile.x = args_.x + at + tile.begin * C;
    tile.stride = C;
    tile.grad_x = args_.grad_x == nullptr ? nullptr : args_.grad_x + at;
    tile.next_strip = next_strip(args_.shape, strip, rows.count);
    tile.next_x = streaming_ ? tile.next_strip : kRowsAhead * C;
    tile.streaming = streaming_;
    products_.reserve(2 * (tile.rows + kTalkLanes));
    tile.products = products_.data();
    tile.left = sums.left;
    tile.right = sums.right;
    const bool finite = ops_.gradient(tile) && edges_.finite();
    if (!finite && tile.grad_x != nullptr)
      spread_windows_singly(tile);
  }

  /// Which windows and edges a tile has.
  TalkGradTile<S, A> tile_of(const TalkStrip& strip, const TalkRows& rows) {
    const TalkReach& reach = reaches_[static_cast<size_t>(strip.batch)];
    const int64_t first = rows.first, span = rows.real();
    // Windows of other tiles reach into grad_x alone.
    const bool around = args_.grad_x != nullptr;
    const int64_t from =
        around ? std::max<int64_t>(0, first - reach.right + 1) : first;
    const int64_t to =
        around ? std::min(rows.valid, first + span + reach.left) : first + span;
    TalkGradTile<S, A> tile = {
        .lanes = strip.lanes,
        .rows = to - from,
        .own = first - from,
        // A row more where other windows' edges have to be clipped.
        .begin = std::max(
            -first,
            -std::max<int64_t>(reach.left, from < first ? 1 : 0)),
        .end = std::min(
            rows.valid - first,
            span + std::max<int64_t>(reach.right - 1, 1)),
        .span = span,
        .ahead = reach.left + 1,
        .ring = talk_ring(std::min(to - from, reach.rows()))};
    if (strip.narrow()) {
      tile.begin = -1;
      tile.end = span + 1;
    }
    const TalkRange range = {first + tile.begin, tile.end - tile.begin};
    tile.edges = edges_.make(strip, {from, to - from, rows.valid}, range);
    if (strip.narrow()) {
      ring_.reserve((span + 3) * kTalkLanes);
    } else {
      tile.first = edges_.first();
      tile.next = edges_.next();
      ring_.reserve(tile.ring * kTalkChannels);
    }
    tile.ring_of_g = ring_.data();
    // Rows behind the tile have products alone.
    if (!offsets_.wanted())
      tile.end = tile.span;
    return tile;
  }

  /// Gradients of the offsets of a head that shares its strips: max_left *
  /// x[edge] / window where the edge is fractional, else 0; on the right
  /// likewise.
  void narrow_offset_gradient(int64_t b, int64_t h, const TalkRows& rows) {
    const TalkShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const Sums sums = offsets_.begin({b, rows}, h);
    const int64_t real = rows.real();
    if (real == 0)
      return;
    const int64_t at = b * shape.steps * C + h * R;
    const TalkEdges<A> edges = edges_.make(
        {.batch = b, .channel = h * R, .channels = R},
        {rows.first, real, rows.valid},
        {0, rows.valid});
    const auto product = [&](int64_t edge) {
      A sum = 0;
      if (edges.parts[edge] == edges.whole(edge))
        return sum;
      const S* const g = args_.grad_y + at + (rows.first + edge / 2) * C;
      const S* const x = args_.x + at + edges.rows[edge] * C;
      for (int64_t c = 0; c < R; ++c)
        sum += widen(g[c]) * widen(x[c]);
      return sum;
    };
    for (int64_t t = 0; t < real; ++t) {
      sums.left[t] = product(2 * t);
      sums.right[t] = product(2 * t + 1);
    }
  }

  const TalkBackward<S, O>& args_;
  const std::vector<TalkReach>& reaches_;
  EdgeMaker<O> edges_;
  const TalkKernels<S, A>& ops_;
  OffsetGradients<O, A> offsets_;
  const bool streaming_;
  Scratch<A> ring_;
  Scratch<A> products_;
};

}  // namespace

template <class S, class O>
void talk_backward(const TalkBackward<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  // Narrower heads share: an edge costs as much as several channels of it.
  constexpr int64_t kOwnStrip = 4;
  const TalkStrips strips(shape, kOwnStrip);
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
