#include "kernels/conv.h"
#include "kernels/conv/taps.h"

/// The step forms of both convolutions, and the gradient of their bias.
namespace seqconv::internal::kernels {
namespace {

/// Elements of scratch memory on the stack: steps of ordinary models take
/// nothing from the heap.
constexpr int64_t kStepInline = 1024;

/// The streams of one thread.
template <class S, class L, class A = AccumulatorOf<S>>
class Stepper {
 public:
  Stepper(const ConvStep<S, L>& args, const Logits<const L>& logits, Isa isa)
      : args_(args),
        shape_(args.shape),
        ops_(conv_kernels<S, A>(isa)),
        taps_(shape_, {args.softmax, args.renormalize_edges, {}}, logits, isa),
        sums_(shape_.head_channels()) {}

  /// Makes the taps of input t of stream `row`.
  void make_taps(int64_t row, int64_t t) {
    taps_.make(
        {.batch = row,
         .first = t,
         .rows = 1,
         .heads = shape_.heads,
         .valid = std::numeric_limits<int64_t>::max() / 2,
         .seen = args_.state.position});
  }

  /// The output at input t of stream `row`, with the taps made last; the input
  /// takes the place of the oldest one in the ring.
  void run(int64_t row, int64_t t) {
    const int64_t C = shape_.channels, R = shape_.head_channels();
    const int64_t at = (row * shape_.steps + t) * C;
    const int64_t slots = args_.state.slots, now = args_.state.position + t;
    S* const ring = args_.state.data + row * slots * C;
    const int64_t past = std::min(slots, now);
    const int64_t oldest = past > 0 ? (now - past) % slots : 0;
    const int64_t unbroken = std::min(past, slots - oldest);
    for (int64_t h = 0; h < shape_.heads; ++h) {
      const A* const tap = taps_.taps(h) + slots - past;
      const int64_t c = h * R;
      A* const sums = sums_.data();
      sums_.fill_zero(R);
      ops_.weighted_sum(ring + oldest * C + c, C, tap, unbroken, sums, R);
      ops_.weighted_sum(ring + c, C, tap + unbroken, past - unbroken, sums, R);
      ops_.weighted_sum(args_.x + at + c, C, tap + past, 1, sums, R);
      for (int64_t i = 0; args_.bias != nullptr && i < R; ++i)
        sums[i] += args_.bias[c + i];
      ops_.narrow(sums, R, args_.y + at + c);
    }
    if (slots > 0)
      std::copy_n(args_.x + at, C, ring + now % slots * C);
  }

 private:
  const ConvStep<S, L>& args_;
  const ConvShape& shape_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A, kStepInline> taps_;
  Scratch<A, kStepInline> sums_;
};

template <class S, class L>
void conv_step(const ConvStep<S, L>& args, const Logits<const L>& logits, const Execution& run) {
  const ConvShape& shape = args.shape;
  const auto body = [&](int64_t begin, int64_t end) {
    Stepper<S, L> stepper(args, logits, run.isa);
    for (int64_t row = begin; row < end; ++row)
      for (int64_t t = 0; t < shape.steps; ++t) {
        stepper.make_taps(row, t);
        stepper.run(row, t);
      }
  };
  // By reference: a std::function of its own would take memory.
  run.parallel_for(
      shape.batch,
      grain_for(shape.steps * (shape.channels + 8) * shape.kernel_size),
      std::cref(body));
}

}  // namespace

template <class S>
void lightconv_step(const ConvStep<S, AccumulatorOf<S>>& args, const Execution& run) {
  conv_step(args, Logits<const AccumulatorOf<S>>{args.logits}, run);
}

template <class S, class L>
void dynamicconv_step(const ConvStep<S, L>& args, const Execution& run) {
  conv_step(args, position_logits(args.shape, args.logits), run);
}

template <class S>
void bias_gradient(
    const ConvShape& shape,
    const int64_t* lengths,
    const S* grad_y,
    AccumulatorOf<S>* grad_bias,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  // Rows that are summed in A before they are added in double.
  constexpr int64_t kWidth = 64, kRows = 64;
  const int64_t T = shape.steps, C = shape.channels;
  const std::vector<A> ones(kRows, A(1));
  run.parallel_for(
      ceil_div(C, kWidth), grain_for(shape.batch * T * kWidth), [&](int64_t begin, int64_t end) {
        const ConvKernels<S, A>& ops = conv_kernels<S, A>(run.isa);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t c = item * kWidth, n = std::min(kWidth, C - c);
          double sums[kWidth] = {};
          for (int64_t b = 0; b < shape.batch; ++b) {
            const int64_t rows = valid_rows(lengths, b, T);
            for (int64_t t = 0; t < rows; t += kRows) {
              const S* const from = grad_y + (b * T + t) * C + c;
              A some[kWidth] = {};
              ops.weighted_sum(from, C, ones.data(), std::min(kRows, rows - t), some, n);
              for (int64_t i = 0; i < n; ++i)
                sums[i] += static_cast<double>(some[i]);
            }
          }
          std::copy_n(sums, n, grad_bias + c);
        }
      });
}

#define SEQCONV_INSTANTIATE(S, A)                                          \
  template void lightconv_step(const ConvStep<S, A>&, const Execution&);   \
  template void dynamicconv_step(const ConvStep<S, A>&, const Execution&); \
  template void bias_gradient(const ConvShape&, const int64_t*, const S*, A*, const Execution&);
SEQCONV_INSTANTIATE(float, float)
#ifndef SEQCONV_FLOAT_ONLY
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template void dynamicconv_step(const ConvStep<BFloat16, BFloat16>&, const Execution&);
#endif

}  // namespace seqconv::internal::kernels
