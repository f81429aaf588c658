#include <functional>

#include "kernels/conv/conv_kernels.h"
#include "kernels/talk/talk_windows.h"

/// TaLK position by position, with the last inputs in a ring.
namespace seqconv::internal::kernels {
namespace {

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
    const int64_t position = row * shape.steps + t;
    const S* const x = args_.x + position * C + head * R;
    const int64_t slots = args_.state.slots, now = args_.state.position + t;
    S* const ring = args_.state.data + row * slots * C + head * R;
    const int64_t past =
        fill_taps(widen(args_.offset_left[position * shape.heads + head]), std::min(now, slots));
    const A* const taps = taps_.data();
    sums_.fill_zero(R);
    const auto add = [&](const S* from, int64_t tap, int64_t rows) {
      ops_.weighted_sum(
          {.src = from,
           .stride = C,
           .rows = rows,
           .taps = taps + tap,
           .acc = sums_.data(),
           .width = R});
    };
    if (past > 0) {
      const int64_t oldest = (now - past) % slots;
      const int64_t unbroken = std::min(past, slots - oldest);
      add(ring + oldest * C, 0, unbroken);
      add(ring, unbroken, past - unbroken);
    }
    add(x, past, 1);
    ops_.narrow(sums_.data(), R, args_.y + position * C + head * R, /*streaming=*/false);
    if (slots > 0)
      std::copy_n(x, R, ring + now % slots * C);
  }

 private:
  /// Elements of scratch memory on the stack.
  static constexpr int64_t kInline = 1024;

  /// Weights of the last inputs, of which there are `limit`, oldest first, the
  /// present one last; returns how many past ones there are.
  int64_t fill_taps(A offset, int64_t limit) {
    const A distance = offset * static_cast<A>(args_.shape.max_left);
    const A scale = talk_scale<A>(args_.shape);
    A* const taps = taps_.data();
    if (distance != distance) {
      taps[0] = distance;
      return 0;
    }
    const A most = static_cast<A>(limit);
    const A reach = std::clamp<A>(distance, 0, most);
    // As a number of A, the limit may be rounded.
    const int64_t whole = std::min(static_cast<int64_t>(reach), limit);
    const A rest = reach < most ? reach - static_cast<A>(whole) : A(0);
    const int64_t past = whole + (rest > 0 ? 1 : 0);
    std::fill_n(taps, past + 1, scale);
    if (rest > 0)
      taps[0] = rest * scale;
    return past;
  }

  const TalkStep<S, O>& args_;
  const ConvKernels<S, A>& ops_;
  Scratch<A, kInline> sums_;
  Scratch<A, kInline> taps_;
};

}  // namespace

template <class S, class O>
void talk_step(const TalkStep<S, O>& args, const Execution& run) {
  const TalkShape& shape = args.shape;
  const auto& together = talk_heads_kernels<S, O>(run.isa);
  if (shape.head_channels() < together.lanes) {
    const auto body = [&](int64_t begin, int64_t end) { together.step(args, begin, end); };
    run.parallel_for(
        shape.batch * talk_head_groups(shape),
        grain_for(shape.steps * kTalkTogether * args.state.slots),
        std::cref(body));
    return;
  }
  const auto body = [&](int64_t begin, int64_t end) {
    StreamStepper<S, O> stepper(args, run.isa);
    for (int64_t item = begin; item < end; ++item)
      for (int64_t t = 0; t < shape.steps; ++t)
        stepper.run(item / shape.heads, item % shape.heads, t);
  };
  // By reference: a std::function of its own would take memory.
  run.parallel_for(
      shape.batch * shape.heads,
      grain_for(shape.steps * (shape.head_channels() * args.state.slots / 2 + 16)),
      std::cref(body));
}

bool has_talk_row(int64_t head_channels, Isa isa) {
  return head_channels < talk_heads_kernels<float, float>(isa).lanes;
}

void talk_row(const TalkRow<float, float>& args, Isa isa) {
  talk_heads_kernels<float, float>(isa).row(args);
}

#define SEQCONV_INSTANTIATE(S, O) template void talk_step(const TalkStep<S, O>&, const Execution&);

SEQCONV_INSTANTIATE(float, float)
#ifndef SEQCONV_FLOAT_ONLY
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)
#endif

}  // namespace seqconv::internal::kernels
