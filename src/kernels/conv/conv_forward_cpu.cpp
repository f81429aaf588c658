#include "kernels/conv.h"
#include "kernels/conv/conv_tiles.h"
#include "kernels/conv/taps.h"

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
  ForwardPlaces(const ConvForward<S, L>& args, const Logits<const L>& logits, const Execution& run)
      : args_(args),
        ops_(conv_kernels<S, A>(run.isa)),
        taps_(args.shape, tap_options(args), logits, run.isa),
        cache_(cache_use(run, args.shape, args.y, args.shape.channels + logits.row_stride)) {}

  void operator()(const ConvPlace& at) {
    const ConvShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const int64_t real = at.real(),
                  step = taps_.shared() ? at.rows : rows_together(at.heads * taps_.pitch());
    for (int64_t t = 0; t < real; t += step)
      convolve(at, t, std::min(step, real - t));
    zero_rows(
        args_.y + (at.batch * shape.steps + at.first) * C + at.head * R,
        C,
        at.heads * R,
        real,
        at.rows);
  }

 private:
  /// Rows [t, t + rows) of a place.
  void convolve(const ConvPlace& at, int64_t t, int64_t rows) {
    const ConvShape& shape = args_.shape;
    const int64_t C = shape.channels, R = shape.head_channels();
    const int64_t origin = at.batch * shape.steps * C + at.head * R;
    const int64_t first = at.first + t, begin = first - shape.padding_left;
    taps_.make(
        {.batch = at.batch,
         .first = first,
         .rows = rows,
         .head = at.head,
         .heads = at.heads,
         .valid = at.valid});
    ops_.convolve(
        {.in = args_.x + origin + begin * C,
         .in_stride = C,
         .first = -begin,
         .last = at.valid - begin,
         .taps = taps_.taps(at.head),
         .tap_t = taps_.row_stride() - 1,
         .tap_r = 1,
         .head_stride = taps_.pitch(),
         .kernel_size = shape.kernel_size,
         .rows = rows,
         .heads = at.heads,
         .channels = R,
         .bias = args_.bias == nullptr ? nullptr : args_.bias + at.head * R,
         .out = args_.y + origin + first * C,
         .out_stride = C,
         .streaming = cache_.streams,
         .ahead = cache_.prefetches ? prefetch_distance(shape, at.heads) : 0});
  }

  const ConvForward<S, L>& args_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A> taps_;
  const CacheUse cache_;
};

template <class S, class L>
void conv_forward(
    const ConvForward<S, L>& args, const Logits<const L>& logits, const Execution& run) {
  const ConvShape& shape = args.shape;
  const int64_t step = forward_rows(shape), heads = heads_of_rows(shape);
  for_places(
      {shape, args.lengths, step, heads},
      step * heads * (shape.head_channels() + 8) * shape.kernel_size,
      run,
      [&] { return ForwardPlaces<S, L>(args, logits, run); });
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
