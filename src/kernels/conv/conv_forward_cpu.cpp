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
        taps_(args.shape, tap_options(args), logits, run.isa),
        rows_(args, added, run.isa),
        cache_(cache) {}

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

  /// Positions [first, first + rows) of a place.
  void convolve(const ConvPlace& at, int64_t first, int64_t rows) {
    const ConvShape& shape = args_.shape;
    const int64_t C = shape.channels, c = at.head * shape.head_channels();
    const int64_t to = at.sequence.at(first) * C + c;
    taps_.make(
        {.sequence = at.sequence,
         .first = first,
         .rows = rows,
         .head = at.head,
         .heads = at.heads,
         .seen = args_.past == nullptr ? 0 : shape.kernel_size - 1});
    rows_.convolve(
        at,
        first,
        rows,
        taps_.view(at.head),
        {.bias = args_.bias == nullptr ? nullptr : args_.bias + c,
         .activation = args_.end.activation,
         .residual = args_.end.residual ? args_.x + to : nullptr,
         .out = args_.y + to,
         .out_stride = at.sequence.stride * C,
         .streaming = cache_.streams,
         .ahead = cache_.prefetches ? prefetch_distance(shape, at.heads) : 0});
  }

  const ConvForward<S, L>& args_;
  TapRows<L, A> taps_;
  ForwardRows<S, A> rows_;
  const CacheUse cache_;
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
