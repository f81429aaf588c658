#include <type_traits>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv/conv_tiles.h"
#include "kernels/conv/taps.h"

/// Backward passes of both convolutions. The taps of a place are made again,
/// together with those of the K-1 positions around it that its inputs also
/// feed: a little more softmax instead of writes that places would have to
/// share. Where taps are shared, their gradient is summed place by place in
/// double, and the places are added up in order.
namespace seqconv::internal::kernels {
namespace {

/// Positions whose taps are made together: scratch memory is linear in K.
constexpr int64_t kBlockRows = 128;
/// Most taps for which rows of x share cache sets without loss.
constexpr int64_t kDirectTaps = 8;

/// The places of one thread.
template <class S, class L, class A = AccumulatorOf<S>>
class BackwardPlaces {
 public:
  BackwardPlaces(
      const ConvBackward<S, L>& args, const Logits<const L>& logits, const Execution& run)
      : args_(args),
        shape_(args.shape),
        ops_(conv_kernels<S, A>(run.isa)),
        taps_(shape_, tap_options(args), logits, run.isa),
        cache_(cache_use(run, shape_, args.grad_x, 2 * shape_.channels + logits.row_stride)),
        own_logits_(!logits.shared()) {}

  /// Writes grad_x of a place and the gradients of its logits, unless they are
  /// null. With `sums` [H, K]: adds the gradients of the shared taps or, where
  /// taps differ, of the shared logits to these instead.
  void operator()(const ConvPlace& at, double* sums = nullptr) {
    const int64_t end = at.first + at.real();
    int64_t from = at.first, to = end;
    if (args_.grad_x != nullptr) {
      // Positions around feed grad_x alone.
      const int64_t before = K() - 1 - shape_.padding_left;
      from = std::max<int64_t>(0, from - before);
      to = std::min(at.valid, to + shape_.padding_left);
      zero_rows(grad_x(at, at.first), C(), at.heads * R(), at.real(), at.rows);
    }
    if (writes_logits())
      zero_rows(grad_logits(at, at.first), H() * K(), at.heads * K(), at.real(), at.rows);
    if (at.real() == 0)
      return;
    const int64_t block = taps_.shared() ? to - from : kBlockRows;
    const bool whole = block >= to - from;
    if (args_.grad_x != nullptr && !whole) {
      sums_.reserve(at.real() * at.heads * R());
      sums_.fill_zero(at.real() * at.heads * R());
    }
    for (; from < to; from += block) {
      const int64_t last = std::min(from + block, to);
      make_taps(at, from, last);
      if (args_.grad_x != nullptr)
        convolve(at, from, last, whole);
      const int64_t first = std::max(from, at.first);
      const Span span{first, std::min(last, end) - first, first - from};
      if (span.rows > 0 && sums != nullptr)
        add_gradients(at, span, sums);
      else if (span.rows > 0 && writes_logits())
        differentiate(at, span, grad_logits(at, first), H() * K());
    }
    if (args_.grad_x != nullptr && !whole)
      for (int64_t t = 0; t < at.real(); ++t)
        ops_.narrow(sums_.data() + t * at.heads * R(), at.heads * R(), grad_x(at, at.first + t));
  }

  /// Gradients of the shared taps, [H, K] -> of their logits.
  void differentiate_shared(const double* sums, L* out) {
    make_taps({}, 0, 0);
    grad_.reserve(H() * taps_.pitch() + kTapSlack);
    for (int64_t i = 0; i < H() * K(); ++i)
      grad_.data()[i / K() * taps_.pitch() + i % K()] = static_cast<A>(sums[i]);
    taps_.backward(0, 1, grad_.data(), out, H() * K());
  }

 private:
  /// Real positions of a place whose taps were made last.
  struct Span {
    int64_t first;
    int64_t rows;
    int64_t row;  ///< of the taps, that of the first one
  };

  int64_t C() const { return shape_.channels; }
  int64_t R() const { return shape_.head_channels(); }
  int64_t H() const { return shape_.heads; }
  int64_t K() const { return shape_.kernel_size; }
  /// Where the first channel of a place is in position t of its sequence.
  int64_t index(const ConvPlace& at, int64_t t) const {
    return (at.batch * shape_.steps + t) * C() + at.head * R();
  }
  S* grad_x(const ConvPlace& at, int64_t t) const { return args_.grad_x + index(at, t); }
  L* grad_logits(const ConvPlace& at, int64_t t) const {
    return args_.grad_logits + ((at.batch * shape_.steps + t) * H() + at.head) * K();
  }
  /// Whether every position has logits of its own, whose gradients are wanted.
  bool writes_logits() const { return own_logits_ && args_.grad_logits != nullptr; }
  int64_t ahead(const ConvPlace& at) const {
    return cache_.prefetches ? prefetch_distance(shape_, at.heads) : 0;
  }

  /// Of positions [from, to).
  void make_taps(const ConvPlace& at, int64_t from, int64_t to) {
    taps_.make(
        {.batch = at.batch,
         .first = from,
         .rows = to - from,
         .head = at.head,
         .heads = at.heads,
         .valid = at.valid});
  }

  /// What outputs [from, to) give to grad_x: all there is to it or, unless
  /// `whole`, a part that is added to sums_.
  void convolve(const ConvPlace& at, int64_t from, int64_t to, bool whole) {
    const int64_t before = K() - 1 - shape_.padding_left;
    // Input s feeds output s - before + i through its tap K-1-i.
    const int64_t first = std::max(at.first, from - shape_.padding_left);
    const int64_t rows = std::min(at.first + at.real(), to + before) - first;
    const int64_t begin = first - before;  // of row 0 of grad_y
    const int64_t row_stride = taps_.row_stride();
    ops_.convolve(
        {.in = args_.grad_y + index(at, begin),
         .in_stride = C(),
         .first = from - begin,
         .last = to - begin,
         .taps = taps_.taps(at.head) + (begin - from) * row_stride + K() - 1,
         .tap_t = 1,
         .tap_r = row_stride - 1,
         .head_stride = taps_.pitch(),
         .kernel_size = K(),
         .rows = rows,
         .heads = at.heads,
         .channels = R(),
         .out = grad_x(at, first),
         .out_stride = C(),
         .sums = whole ? nullptr : sums_.data() + (first - at.first) * at.heads * R(),
         .streaming = cache_.streams,
         .ahead = ahead(at)});
  }

  /// Row `t` of logits, or of their gradients, for the head h of a place and
  /// those that follow.
  template <class Logit>
  RowsAhead rows_ahead(Logit* logits, const ConvPlace& at, int64_t t, int64_t h) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(L));
    // Less than a line for a head comes by itself.
    if (!own_logits_ || !cache_.prefetches || K() * kSize < kCacheLine)
      return {};
    const int64_t row = at.batch * shape_.steps + t;
    return {logits + (row * H() + at.head + h) * K(), H() * K() * kSize, K() * kSize};
  }

  /// Gradients of logits.
  void differentiate(const ConvPlace& at, const Span& span, L* out, int64_t stride) {
    const int64_t width = at.heads * taps_.pitch();
    grad_.reserve(span.rows * width + kTapSlack);
    // What the next place will make taps of, and write.
    const int64_t next = at.first + at.rows;
    for_products(at, span, [&](int64_t h, ProductTile<A> tile) {
      tile.logits = rows_ahead(args_.logits, at, next + shape_.padding_left, h);
      tile.grad_logits = rows_ahead(args_.grad_logits, at, next, h);
      ops_.tap_products(tile, grad_.data() + h * taps_.pitch(), width);
    });
    taps_.backward(span.row, span.rows, grad_.data(), out, stride);
  }

  /// The same, added to sums [H, K].
  void add_gradients(const ConvPlace& at, const Span& span, double* sums) {
    const int64_t width = at.heads * K();
    double* const to = sums + at.head * K();
    if (taps_.shared())
      return for_products(at, span, [&](int64_t h, const ProductTile<A>& tile) {
        ops_.shared_tap_products(tile, to + h * K());
      });
    logits_.reserve(span.rows * width);
    differentiate(at, span, logits_.data(), width);
    for (int64_t i = 0; i < span.rows * width; ++i)
      to[i % width] += static_cast<double>(widen(logits_.data()[i]));
  }

  /// Calls work(h, tile) for the heads of a place, a stage's width of channels
  /// at a time.
  template <class Work>
  void for_products(const ConvPlace& at, const Span& span, const Work& work) {
    const int64_t begin = span.first - shape_.padding_left;  // of row 0 of x
    const int64_t x_rows = span.rows + tap_pitch(K()) - 1;
    for (int64_t h = 0; h < at.heads; ++h)
      for (int64_t c = 0; c < R(); c += kStagePitch) {
        const Part part = {
            .batch = at.batch,
            .channel = (at.head + h) * R() + c,
            .channels = std::min(kStagePitch, R() - c),
            .valid = at.valid,
            .ahead = ahead(at)};
        const bool few = K() <= kDirectTaps;
        const auto x = stage(args_.x, part, begin, x_rows, few, staged_x_);
        const auto g = stage(args_.grad_y, part, span.first, span.rows, true, staged_g_);
        work(
            h,
            {.g = g.data,
             .g_stride = g.stride,
             .x = x.data,
             .x_stride = x.stride,
             .kernel_size = K(),
             .rows = span.rows,
             .channels = part.channels,
             .add = c > 0});
      }
  }

  /// Some channels of a sequence.
  struct Part {
    int64_t batch;
    int64_t channel;
    int64_t channels;
    int64_t valid;
    int64_t ahead;
  };
  struct Rows {
    const A* data;
    int64_t stride;
  };
  /// Rows from `first` on, zeros outside of the sequence: where they lie, if
  /// that is wanted and they can be read so, or copied.
  Rows stage(
      const S* tensor, const Part& part, int64_t first, int64_t rows, bool direct, Scratch<A>& to) {
    const S* const in = tensor + (part.batch * shape_.steps + first) * C() + part.channel;
    if constexpr (std::is_same_v<S, A>)
      if (direct && part.channels % kTapSlack == 0 && first >= 0 && first + rows <= part.valid)
        return {in, C()};
    to.reserve(rows * kStagePitch);
    ops_.stage(
        {.in = in,
         .in_stride = C(),
         .first = -first,
         .last = part.valid - first,
         .rows = rows,
         .channels = part.channels,
         .ahead = part.ahead},
        to.data());
    return {to.data(), kStagePitch};
  }

  const ConvBackward<S, L>& args_;
  const ConvShape& shape_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A> taps_;
  const CacheUse cache_;
  const bool own_logits_;
  Scratch<A> sums_;    // [rows, heads * R] of grad_x
  Scratch<A> grad_;    // [rows, heads, pitch]
  Scratch<L> logits_;  // [rows, heads, K], gradients
  Scratch<A> staged_x_;
  Scratch<A> staged_g_;
};

/// How a backward pass is cut.
PlaceGrid backward_grid(const ConvShape& shape, const int64_t* lengths, bool shared) {
  return {shape, lengths, tile_rows(shape.kernel_size), backward_heads(shape, shared)};
}

int64_t operations(const PlaceGrid& grid) {
  return grid.step * grid.heads * (grid.shape.head_channels() + 8) * grid.shape.kernel_size * 2;
}

}  // namespace

template <class S>
void lightconv_backward(const ConvBackward<S, AccumulatorOf<S>>& args, const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const Logits<const A> logits{args.logits};
  const bool shared = !args.renormalize_edges;
  const bool wanted = args.grad_logits != nullptr;
  const PlaceGrid grid = backward_grid(shape, args.lengths, shared);
  const int64_t K = shape.kernel_size, width = shape.heads * K;
  // K numbers a head for every tile, which has 64 rows or more.
  std::vector<double> sums(
      static_cast<size_t>(std::max<int64_t>(1, wanted ? shape.batch * grid.tiles : 0) * width));
  for_places(grid, operations(grid), run, [&] {
    return [&, work = BackwardPlaces<S, A>(args, logits, run)](const ConvPlace& at) mutable {
      work(at, wanted ? sums.data() + at.tile * width : nullptr);
    };
  });
  if (!wanted)
    return;
  // In order.
  for (size_t i = static_cast<size_t>(width); i < sums.size(); ++i)
    sums[i % static_cast<size_t>(width)] += sums[i];
  if (shared)
    BackwardPlaces<S, A>(args, logits, run).differentiate_shared(sums.data(), args.grad_logits);
  else
    std::copy_n(sums.begin(), width, args.grad_logits);
}

template <class S, class L>
void dynamicconv_backward(const ConvBackward<S, L>& args, const Execution& run) {
  const auto logits = position_logits(args.shape, args.logits);
  const PlaceGrid grid = backward_grid(args.shape, args.lengths, /*shared=*/false);
  for_places(grid, operations(grid), run, [&] { return BackwardPlaces<S, L>(args, logits, run); });
}

#define SEQCONV_INSTANTIATE(S, A)                                                \
  template void lightconv_backward(const ConvBackward<S, A>&, const Execution&); \
  template void dynamicconv_backward(const ConvBackward<S, A>&, const Execution&);
SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template void dynamicconv_backward(const ConvBackward<BFloat16, BFloat16>&, const Execution&);

}  // namespace seqconv::internal::kernels
