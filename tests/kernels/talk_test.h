#pragma once

#include <gtest/gtest.h>

#include "kernels/plain_talk.h"
#include "support/rounds.h"

/// Compares talk with its definition by sums over windows, in loops of doubles.
namespace seqconv::internal::kernels::testing {

using TalkCase = PlainTalkCase;
using ReferenceTalk = PlainTalk;

/// Tests of an instruction set.
class TalkTest : public ::testing::TestWithParam<Isa> {
 protected:
  /// Multiples of 1/128: positions are exact, in bfloat16 too.
  std::vector<double> offsets(const TalkCase& c) {
    std::uniform_int_distribution<int> step(int(128 * c.min), int(128 * c.max));
    std::vector<double> values(place(c.shape.batch * c.shape.steps * c.shape.heads));
    for (double& v : values)
      v = value(stored<BFloat16>(step(random_) / 128.0));
    return values;
  }

  /// Values that are exact in every type, and what loops make of them.
  ReferenceTalk plain_of(const TalkCase& c) {
    const TalkShape& s = c.shape;
    const int64_t count = s.batch * s.steps * s.channels;
    ReferenceTalk plain{c, {}, {}, {}, {}, {}, {}, {}, {}};
    plain.x = draw<double>(random_, count);
    plain.grad_y = draw<double>(random_, count);
    plain.left = offsets(c);
    if (s.max_right > 0)
      plain.right = offsets(c);
    plain.run();
    return plain;
  }

  template <class S, class O>
  void expect_plain(const ReferenceTalk& plain) {
    const TalkCase& c = plain.c;
    const TalkShape& s = c.shape;
    SCOPED_TRACE(
        ::testing::Message() << "T " << s.steps << " C " << s.channels << " H " << s.heads
                             << " reach " << s.max_left << " " << s.max_right << " bytes "
                             << sizeof(S) << " " << sizeof(O));
    const auto x = stored<S>(plain.x), grad_y = stored<S>(plain.grad_y);
    const auto left = stored<O>(plain.left), right = stored<O>(plain.right);
    Lines<S> y(x.size()), grad_x(x.size());
    std::vector<O> grad_left(left.size()), grad_right(right.size());
    const O* const to_right = right.empty() ? nullptr : right.data();
    const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
    const Execution run{in_chunks(3), GetParam(), c.streams_from};
    talk_forward(TalkForward<S, O>{s, x.data(), left.data(), to_right, lengths, y.data()}, run);
    talk_backward(
        TalkBackward<S, O>{
            s,
            x.data(),
            left.data(),
            to_right,
            lengths,
            grad_y.data(),
            grad_x.data(),
            grad_left.data(),
            right.empty() ? nullptr : grad_right.data()},
        run);
    EXPECT_LE(relative_error(y, plain.y), bound<S>()) << "y";
    EXPECT_LE(relative_error(grad_x, plain.grad_x), bound<S>()) << "grad_x";
    EXPECT_LE(relative_error(grad_left, plain.grad_left), bound<O>());
    if (!right.empty()) {
      EXPECT_LE(relative_error(grad_right, plain.grad_right), bound<O>());
    }
  }

  /// The output and all gradients of what loops had, cut for so many threads.
  template <class S, class O>
  std::vector<double> results(const ReferenceTalk& plain, const ParallelFor& threads) {
    const TalkCase& c = plain.c;
    const auto x = stored<S>(plain.x), grad_y = stored<S>(plain.grad_y);
    const auto left = stored<O>(plain.left), right = stored<O>(plain.right);
    std::vector<S> y(x.size()), grad_x(x.size());
    std::vector<O> grad_left(left.size()), grad_right(right.size());
    const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
    const Execution run{threads, GetParam(), c.streams_from};
    talk_forward(
        TalkForward<S, O>{c.shape, x.data(), left.data(), right.data(), lengths, y.data()}, run);
    talk_backward(
        TalkBackward<S, O>{
            c.shape,
            x.data(),
            left.data(),
            right.data(),
            lengths,
            grad_y.data(),
            grad_x.data(),
            grad_left.data(),
            grad_right.data()},
        run);
    std::vector<double> all = wide(y);
    for (const auto& some : {wide(grad_x), wide(grad_left), wide(grad_right)})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }

  void expect_plain_everywhere(const TalkCase& c) {
    const ReferenceTalk plain = plain_of(c);
    internal::testing::in_turn(
        c.shape.steps + c.shape.max_left / 2,
        [&] { expect_plain<float, float>(plain); },
        [&] { expect_plain<double, double>(plain); },
        [&] { expect_plain<BFloat16, float>(plain); },
        [&] { expect_plain<BFloat16, BFloat16>(plain); });
  }

  std::mt19937 random_{1};
};

}  // namespace seqconv::internal::kernels::testing
