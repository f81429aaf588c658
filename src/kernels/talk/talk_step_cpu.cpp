#include <functional>

#include "kernels/conv/conv_kernels.h"
#include "kernels/talk/talk_windows.h"

/// TaLK position by position, with the last inputs in a ring.
namespace seqconv::kernels {
namespace {

/// Elements of scratch memory on the stack.
constexpr int64_t kStepInline = 1024;

/// One thread of the step form.
template <class S, class O, class A = AccumulatorOf<S>>
class StreamStepper {
 public:
  StreamStepper(const TalkStep<S, O>& args, Isa isa)
      : args_(args),
        ops_(conv_kernels<S, A>(isa)),
        sums_(args.shape.head_channels()),
        taps_(args.state.slots + 1) {}

  void run(int64_t row, int64_t head, int64_t t) {
    const TalkShape& shape = args_.shape;
    const int64_t R = shape.head_channels(), C = shape.channels;
    const int64_t at = (row * shape.steps + t) * C + head * R;
    const int64_t slots = args_.state.slots, now = args_.state.position + t;
    S* const ring = args_.state.data + row * slots * C + head * R;
    const int64_t past = fill_taps(row, head, t, now);
    A* const taps = taps_.data();
    sums_.fill_zero(R);
    if (past > 0) {
      const int64_t oldest = (now - past) % slots;
      const int64_t unbroken = std::min(past, slots - oldest);
      ops_.weighted_sum(ring + oldest * C, C, taps, unbroken, sums_.data(), R);
      ops_.weighted_sum(
          ring,
          C,
          taps + unbroken,
          past - unbroken,
          sums_.data(),
          R);
    }
    ops_.weighted_sum(args_.x + at, C, taps + past, 1, sums_.data(), R);
    ops_.narrow(sums_.data(), R, args_.y + at);
    if (slots > 0)
      std::copy_n(args_.x + at, R, ring + now % slots * C);
  }

 private:
  /// Weights of the last inputs, oldest first, the present one last; returns
  /// how many past ones there are.
  int64_t fill_taps(int64_t row, int64_t head, int64_t t, int64_t now) {
    const TalkShape& shape = args_.shape;
    const A scale = talk_scale<A>(shape);
    const O offset =
        args_.offset_left[(row * shape.steps + t) * shape.heads + head];
    const A distance =
        static_cast<A>(widen(offset)) * static_cast<A>(shape.max_left);
    A* const taps = taps_.data();
    if (distance != distance) {
      taps[0] = distance;
      return 0;
    }
    // As a number of A, the limit may be rounded.
    const int64_t limit = std::min(now, args_.state.slots);
    const int64_t tokens = distance < static_cast<A>(limit)
        ? static_cast<int64_t>(std::max<A>(0, distance))
        : limit;
    const int64_t whole = std::min(tokens, limit);
    const A rest =
        whole < limit ? std::max<A>(0, distance) - static_cast<A>(whole) : A(0);
    const int64_t past = whole + (rest > 0 ? 1 : 0);
    std::fill_n(taps, past + 1, scale);
    if (rest > 0)
      taps[0] = rest * scale;
    return past;
  }

  const TalkStep<S, O>& args_;
  const ConvKernels<S, A>& ops_;
  Scratch<A, kStepInline> sums_;
  Scratch<A, kStepInline> taps_;
};

}  // namespace

template <class S, class O>
void talk_step(const TalkStep<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const auto body = [&](int64_t begin, int64_t end) {
    StreamStepper<S, O> stepper(args, run.isa);
    for (int64_t item = begin; item < end; ++item)
      for (int64_t t = 0; t < shape.steps; ++t)
        stepper.run(item / shape.heads, item % shape.heads, t);
  };
  // By reference: a std::function of its own would take memory.
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(
          shape.steps * (shape.head_channels() * args.state.slots / 2 + 16)),
      std::cref(body));
}

template void talk_step(const TalkStep<float, float>&, const Execution&);
template void talk_step(const TalkStep<double, double>&, const Execution&);
template void talk_step(const TalkStep<BFloat16, BFloat16>&, const Execution&);
template void talk_step(const TalkStep<BFloat16, float>&, const Execution&);

}  // namespace seqconv::kernels
