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
  Stepper(
      const ConvStep<S, L>& args, const Logits<const L>& logits, const AddedTaps<A>& added, Isa isa)
      : args_(args),
        shape_(args.shape),
        ops_(conv_kernels<S, A>(isa)),
        taps_(shape_, {args.softmax, args.renormalize_edges, {}}, logits, isa),
        added_(added),
        sums_(taps_.by_channel() ? shape_.channels : shape_.head_channels()) {}

  /// The real inputs of stream n, one after the other.
  void stream(int64_t n) {
    const int64_t row = args_.rows == nullptr ? n : args_.rows[n];
    const int64_t given = args_.lengths == nullptr ? shape_.steps : args_.lengths[n];
    const int64_t real = row < 0 ? 0 : given;
    const int64_t position = args_.positions == nullptr || row < 0
        ? args_.state.position
        : args_.positions[row * args_.position_stride];
    for (int64_t t = 0; t < real; ++t) {
      taps_.make(
          {.sequence =
               {.row = n * shape_.steps + t, .valid = std::numeric_limits<int64_t>::max() / 2},
           .rows = 1,
           .heads = shape_.heads,
           .seen = (position + t) / shape_.dilation});
      run(row, n * shape_.steps + t, position + t);
    }
    const int64_t C = shape_.channels;
    zero_rows(args_.y + n * shape_.steps * C, C, C, real, shape_.steps);
  }

 private:
  /// The output at input number `now`, row `at` of x, with the taps made last;
  /// the input takes the place of the oldest one in the ring.
  void run(int64_t row, int64_t at, int64_t now) {
    const int64_t C = shape_.channels, slots = args_.state.slots;
    S* const ring = args_.state.data + row * slots * C;
    if (taps_.by_channel()) {
      channels(ring, at, now, taps_.view(0), 0, C);
    } else {
      const int64_t R = shape_.head_channels();
      for (int64_t h = 0; h < shape_.heads; ++h)
        channels(ring, at, now, taps_.view(h), h * R, R);
    }
    if (slots > 0)
      std::copy_n(args_.x + at * C, C, ring + now % slots * C);
  }

  /// Channels [c, c + width) of it, with their taps.
  void channels(
      const S* ring, int64_t at, int64_t now, const TapView<A>& taps, int64_t c, int64_t width) {
    const int64_t C = shape_.channels, K = shape_.kernel_size, D = shape_.dilation;
    const int64_t slots = args_.state.slots;
    A* const sums = sums_.data();
    std::fill_n(sums, width, A(0));
    const auto add = [&](const S* rows, int64_t tap, int64_t count) {
      const A* const added = added_.taps(c);
      ops_.weighted_sum(
          {.src = rows + c,
           .stride = C,
           .rows = count,
           .taps = taps.at + tap * taps.tap_stride,
           .tap_r = taps.tap_stride,
           .by_channel = taps.by_channel,
           .added = added == nullptr ? nullptr : added + tap * added_.pitch(),
           .added_r = added_.pitch(),
           .acc = sums,
           .width = width});
    };
    int64_t tap = K - 1 - std::min(K - 1, now / D);
    while (tap < K - 1) {
      // Rows that follow in the ring: all up to its end without a dilation.
      const int64_t slot = (now - (K - 1 - tap) * D) % slots;
      const int64_t count = D > 1 ? 1 : std::min(K - 1 - tap, slots - slot);
      add(ring + slot * C, tap, count);
      tap += count;
    }
    add(args_.x + at * C, K - 1, 1);
    ops_.end_rows(
        {.acc = sums,
         .bias = args_.bias == nullptr ? nullptr : args_.bias + c,
         .activation = args_.end.activation,
         .residual = args_.end.residual ? args_.x + at * C + c : nullptr,
         .y = args_.y + at * C + c,
         .width = width});
  }

  const ConvStep<S, L>& args_;
  const ConvShape& shape_;
  const ConvKernels<S, A>& ops_;
  TapRows<L, A, kStepInline> taps_;
  const AddedTaps<A>& added_;
  Scratch<A, kStepInline> sums_;
};

template <class S, class L>
void conv_step(const ConvStep<S, L>& args, const Logits<const L>& logits, const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const AddedTaps<A> added(shape, args.added, run.isa);
  const auto body = [&](int64_t begin, int64_t end) {
    Stepper<S, L> stepper(args, logits, added, run.isa);
    for (int64_t n = begin; n < end; ++n)
      stepper.stream(n);
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
    const int64_t* offsets,
    const S* grad_y,
    AccumulatorOf<S>* grad_bias,
    const Execution& run) {
  using A = AccumulatorOf<S>;
  // Rows that are summed in A before they are added in double.
  constexpr int64_t kWidth = 64, kRows = 64;
  const int64_t C = shape.channels;
  const Sequences sequences{shape, lengths, offsets};
  const std::vector<A> ones(kRows, A(1));
  const int64_t grain = grain_for(sequences.all_rows() * kWidth);
  run.parallel_for(ceil_div(C, kWidth), grain, [&](int64_t begin, int64_t end) {
    const ConvKernels<S, A>& ops = conv_kernels<S, A>(run.isa);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t c = item * kWidth, n = std::min(kWidth, C - c);
      double sums[kWidth] = {};
      for (int64_t b = 0; b < shape.batch; ++b) {
        const int64_t rows = sequences.real(b);
        for (int64_t t = 0; t < rows; t += kRows) {
          A some[kWidth] = {};
          ops.weighted_sum(
              {.src = grad_y + (sequences.first(b) + t) * C + c,
               .stride = C,
               .rows = std::min(kRows, rows - t),
               .taps = ones.data(),
               .acc = some,
               .width = n});
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
  template void bias_gradient(                                             \
      const ConvShape&, const int64_t*, const int64_t*, const S*, A*, const Execution&);
SEQCONV_INSTANTIATE(float, float)
#ifndef SEQCONV_FLOAT_ONLY
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template void dynamicconv_step(const ConvStep<BFloat16, BFloat16>&, const Execution&);
#endif

}  // namespace seqconv::internal::kernels
