#include "kernels/conv.h"
#include "kernels/conv/forward_rows.h"

/// Forward passes of both convolutions: LightConv is DynamicConv whose logits
/// have a stride of zero in time. The taps of a few rows are made in the
/// first-level cache just before they are used; those that all rows share, once
/// in a thread.
namespace seqconv::internal::kernels {
namespace {

/// The places of one thread.
template <class S, class L, class A = AccumulatorOf<S>>
class ForwardPlaces {
 public:
  ForwardPlaces(
      const ConvForward<S, L>& args,
      const Logits<const L>& logits,
      const AddedTaps<A>& added,
      const CacheUse& cache,
      const Execution& run)
      : args_(args),
        ops_(conv_kernels<S, A>(run.isa)),
        taps_(args.shape, tap_options(args), logits, run.isa),
        rows_(args, added, run.isa),
        cache_(cache),
        ends_(args.end.activation != ConvActivation::kNone || args.end.residual) {
    taps_.fetch(cache.prefetches);
  }

  void operator()(const ConvPlace& at) {
    const ConvShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const int64_t real = at.real(), step = rows_of_taps(at), heads = heads_of_taps(at);
    ConvPlace some = at;
    // Rows as a whole, as their memory lies, and what is made of them by groups.
    for (int64_t t = 0; t < real; t += step)
      for (int64_t h = 0; h < at.heads; h += heads) {
        some.head = at.head + h;
        some.heads = std::min(heads, at.heads - h);
        convolve(some, at.first + t, std::min(step, real - t));
      }
    zero_rows(
        args_.y + at.sequence.at(at.first) * C + at.head * R,
        at.sequence.stride * C,
        at.heads * R,
        real,
        at.rows);
  }

 private:
  /// Rows of a place whose taps are made together.
  int64_t rows_of_taps(const ConvPlace& at) const {
    if (taps_.shared())
      return at.rows;
    return taps_.by_channel() ? kChannelTapRows : rows_together(at.heads * taps_.pitch());
  }

  /// Heads of a place whose taps are made together.
  int64_t heads_of_taps(const ConvPlace& at) const {
    return taps_.by_channel() && !taps_.shared() ? heads_of_channel_taps(args_.shape) : at.heads;
  }

  /// Rows of sums that stay in the first-level cache until they end.
  static constexpr int64_t kEndRows = 2 * kRowBlock;

  const A* bias(int64_t c) const { return args_.bias == nullptr ? nullptr : args_.bias + c; }

  /// Positions [first, first + rows) of a place.
  void convolve(const ConvPlace& at, int64_t first, int64_t rows) {
    const ConvShape& shape = args_.shape;
    taps_.make(
        {.sequence = at.sequence,
         .first = first,
         .rows = rows,
         .head = at.head,
         .heads = at.heads,
         .seen = args_.past == nullptr ? 0 : shape.kernel_size - 1});
    TapView<A> taps = taps_.view(at.head);
    const int64_t C = shape.channels, c = at.head * shape.head_channels();
    const int64_t ahead = cache_.prefetches ? prefetch_distance(shape, at.heads) : 0;
    if (!ends_)
      return rows_.convolve(
          at,
          first,
          rows,
          taps,
          {.bias = bias(c),
           .out = args_.y + at.sequence.at(first) * C + c,
           .out_stride = at.sequence.stride * C,
           .streaming = cache_.streams,
           .ahead = ahead});
    for (int64_t t = 0; t < rows; t += kEndRows) {
      const int64_t some = std::min(kEndRows, rows - t);
      rows_.convolve(at, first + t, some, taps, sums(at, some, ahead));
      taps.at += some * taps.row_stride;
      end_rows(at, first + t, some);
    }
  }

  /// A tile whose rows of sums go to sums_.
  ConvTile<S, A> sums(const ConvPlace& at, int64_t rows, int64_t ahead) {
    const int64_t W = at.heads * args_.shape.head_channels();
    sums_.reserve(rows * W);
    if constexpr (std::is_same_v<S, A>)
      return {.out = sums_.data(), .out_stride = W, .ahead = ahead};
    return {.sums = sums_.data(), .adds = false, .ahead = ahead};
  }

  /// sums_ -> outputs of positions [first, first + rows).
  void end_rows(const ConvPlace& at, int64_t first, int64_t rows) {
    const int64_t R = args_.shape.head_channels(), C = args_.shape.channels, c = at.head * R;
    const int64_t to = at.sequence.at(first) * C + c;
    ops_.end_rows(
        {.acc = sums_.data(),
         .acc_stride = at.heads * R,
         .bias = bias(c),
         .activation = args_.end.activation,
         .residual = args_.end.residual ? args_.x + to : nullptr,
         .y = args_.y + to,
         .stride = at.sequence.stride * C,
         .rows = rows,
         .width = at.heads * R,
         .streaming = cache_.streams});
  }

  const ConvForward<S, L>& args_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A> taps_;
  ForwardRows<S, A> rows_;
  const CacheUse cache_;
  const bool ends_;  ///< sums pass through an activation, or x is added
  Scratch<A> sums_;  // [rows, width]
};

template <class S, class L>
void conv_forward(
    const ConvForward<S, L>& args, const Logits<const L>& logits, const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const Sequences sequences{shape, args.lengths, args.offsets};
  const bool few = few_channels<A>(shape, conv_kernels<A, A>(run.isa));
  const PlaceGrid grid(sequences, forward_rows(sequences), heads_of_rows(shape));
  const AddedTaps<A> added(shape, args.added, run.isa);
  const CacheUse cache = cache_use(
      run,
      sequences.all_rows(),
      shape.channels + logits.row_stride,
      args.y,
      stored_channels(shape, grid, few));
  for_places(grid, operations(shape, grid), run, [&] {
    return ForwardPlaces<S, L>(args, logits, added, cache, run);
  });
}

}  // namespace

template <class S>
void lightconv_forward(const ConvForward<S, AccumulatorOf<S>>& args, const Execution& run) {
  conv_forward(args, Logits<const AccumulatorOf<S>>{args.logits}, run);
}

template <class S, class L>
void dynamicconv_forward(const ConvForward<S, L>& args, const Execution& run) {
  conv_forward(args, position_logits(args.shape, args.logits), run);
}

#define SEQCONV_INSTANTIATE(S, A)                                              \
  template void lightconv_forward(const ConvForward<S, A>&, const Execution&); \
  template void dynamicconv_forward(const ConvForward<S, A>&, const Execution&);
SEQCONV_INSTANTIATE(float, float)
#ifndef SEQCONV_FLOAT_ONLY
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template void dynamicconv_forward(const ConvForward<BFloat16, BFloat16>&, const Execution&);
#endif

}  // namespace seqconv::internal::kernels
