#include <gtest/gtest.h>

#include <limits>

#include "kernels/conv.h"
#include "kernels/plain_conv.h"
#include "support/rounds.h"

/// lightconv and dynamicconv against the same thing said in loops of doubles.
namespace seqconv::internal::kernels {
namespace {

using testing::bound;
using testing::draw;
using testing::place;
using testing::relative_error;

using Case = testing::PlainConvCase;
using Plain = testing::PlainConv;

class ConvKernels : public ::testing::TestWithParam<Isa> {
 protected:
  /// Values that are exact in every type, and what loops make of them.
  Plain plain_of(const Case& c) {
    const int64_t count = c.shape.batch * c.shape.steps * c.shape.channels;
    auto x = draw<double>(random_, count), grad_y = draw<double>(random_, count);
    auto logits = draw<double>(random_, c.logit_count());
    if (c.extreme != 0)
      for (size_t i = 0; i < logits.size(); i += 5)
        logits[i] = testing::value(testing::stored<BFloat16>(c.extreme));
    Plain plain{c, std::move(x), std::move(logits), std::move(grad_y), {}, {}, {}};
    plain.run();
    return plain;
  }

  template <class S, class L>
  void expect_plain(const Plain& plain) {
    const Case& c = plain.c;
    SCOPED_TRACE(
        ::testing::Message() << (c.dynamic ? "dynamic" : "light") << " softmax " << c.softmax
                             << " B " << c.shape.batch << " T " << c.shape.steps << " C "
                             << c.shape.channels << " H " << c.shape.heads << " K "
                             << c.shape.kernel_size << " padding " << c.shape.padding_left
                             << " bytes " << sizeof(S) << " " << sizeof(L));
    const auto x = testing::stored<S>(plain.x);
    const auto grad_y = testing::stored<S>(plain.grad_y);
    const auto logits = testing::stored<L>(plain.logits);
    testing::Lines<S> y(x.size()), grad_x(x.size());
    std::vector<L> grad_logits(logits.size());
    const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
    const Execution run{testing::in_chunks(3), GetParam(), c.streams_from};
    const ConvForward<S, L> forward{
        .shape = c.shape,
        .softmax = c.softmax,
        .renormalize_edges = c.renormalize_edges,
        .drop = c.drop,
        .x = x.data(),
        .logits = logits.data(),
        .lengths = lengths,
        .y = y.data()};
    const ConvBackward<S, L> backward{
        .shape = c.shape,
        .softmax = c.softmax,
        .renormalize_edges = c.renormalize_edges,
        .drop = c.drop,
        .x = x.data(),
        .logits = logits.data(),
        .lengths = lengths,
        .grad_y = grad_y.data(),
        .grad_x = grad_x.data(),
        .grad_logits = grad_logits.data()};
    if (c.dynamic) {
      dynamicconv_forward(forward, run);
      dynamicconv_backward(backward, run);
    } else if constexpr (std::is_same_v<L, AccumulatorOf<S>>) {
      lightconv_forward<S>(forward, run);
      lightconv_backward<S>(backward, run);
    }
    EXPECT_LE(relative_error(y, plain.y), bound<S>()) << "y";
    EXPECT_LE(relative_error(grad_x, plain.grad_x), bound<S>()) << "grad_x";
    EXPECT_LE(relative_error(grad_logits, plain.grad_logits), bound<L>())
        << "gradient of the logits";
  }

  /// The backward pass with one gradient alone against that with both.
  template <class S, class L>
  void expect_the_same_alone(const Plain& plain) {
    const Case& c = plain.c;
    SCOPED_TRACE(
        ::testing::Message() << (c.dynamic ? "dynamic" : "light") << " K " << c.shape.kernel_size
                             << " R " << c.shape.head_channels() << " renormalized "
                             << c.renormalize_edges << " streams from " << c.streams_from);
    const auto x = testing::stored<S>(plain.x);
    const auto grad_y = testing::stored<S>(plain.grad_y);
    const auto logits = testing::stored<L>(plain.logits);
    const Execution run{testing::in_chunks(3), GetParam(), c.streams_from};
    testing::Lines<S> grad_x[2];
    std::vector<L> grad_logits[2];
    const auto differentiate = [&](bool input, bool taps, size_t to) {
      grad_x[to].resize(x.size());
      grad_logits[to].resize(logits.size());
      const ConvBackward<S, L> backward{
          .shape = c.shape,
          .softmax = c.softmax,
          .renormalize_edges = c.renormalize_edges,
          .drop = c.drop,
          .x = x.data(),
          .logits = logits.data(),
          .lengths = c.lengths.data(),
          .grad_y = grad_y.data(),
          .grad_x = input ? grad_x[to].data() : nullptr,
          .grad_logits = taps ? grad_logits[to].data() : nullptr};
      if (c.dynamic)
        dynamicconv_backward(backward, run);
      else if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
        lightconv_backward<S>(backward, run);
    };
    differentiate(true, true, 0);
    differentiate(true, false, 1);
    differentiate(false, true, 1);
    EXPECT_LE(relative_error(grad_x[1], testing::wide(grad_x[0])), 0.0);
    EXPECT_LE(relative_error(grad_logits[1], testing::wide(grad_logits[0])), 0.0);
  }

  /// Both convolutions, every type with one of two neighbouring turns: for
  /// large tensors.
  void expect_plain_in_turn(Case c, size_t turn) {
    c.dynamic = false;
    const Plain light = plain_of(c);
    c.dynamic = true;
    const Plain dynamic = plain_of(c);
    if (turn % 2 == 0) {
      seqconv::internal::testing::in_turn(
          turn_of(c),
          [&] { expect_plain<float, float>(light); },
          [&] { expect_plain<BFloat16, float>(light); });
      seqconv::internal::testing::in_turn(
          turn_of(c),
          [&] { expect_plain<double, double>(dynamic); },
          [&] { expect_plain<BFloat16, BFloat16>(dynamic); });
    } else {
      expect_plain<double, double>(light);
      seqconv::internal::testing::in_turn(
          turn_of(c),
          [&] { expect_plain<float, float>(dynamic); },
          [&] { expect_plain<BFloat16, float>(dynamic); });
    }
  }

  /// Both convolutions in all types.
  void expect_plain_everywhere(Case c) {
    c.dynamic = false;
    const Plain light = plain_of(c);
    seqconv::internal::testing::in_turn(
        turn_of(c),
        [&] { expect_plain<float, float>(light); },
        [&] { expect_plain<double, double>(light); },
        [&] { expect_plain<BFloat16, float>(light); });
    c.dynamic = true;
    const Plain dynamic = plain_of(c);
    seqconv::internal::testing::in_turn(
        turn_of(c),
        [&] { expect_plain<float, float>(dynamic); },
        [&] { expect_plain<double, double>(dynamic); },
        [&] { expect_plain<BFloat16, float>(dynamic); },
        [&] { expect_plain<BFloat16, BFloat16>(dynamic); });
  }

  static int64_t turn_of(const Case& c) {
    return c.shape.kernel_size / 2 + c.shape.steps + c.renormalize_edges;
  }

  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(
    Isas, ConvKernels, ::testing::ValuesIn(supported_isas()), testing::isa_name);

TEST_P(ConvKernels, EqualLoopsOfDoublesOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kWidths[] = {
      {6, 2},
      {5, 5},
      {35, 7},
      {32, 2},
      {60, 1},
      {128, 2},
      {48, 2},
      {40, 40},
      {24, 12},
      {100, 25},
      {72, 9},
      {150, 150},
      {66, 22}};
  size_t turn = 0;
  for (const int64_t T : {1, 5, 31, 65, 130})
    for (const int64_t K : {1, 2, 3, 4, 7, 8, 15, 31, 64, 70}) {
      const auto [C, H] = kWidths[turn++ % std::size(kWidths)];
      const int64_t padding = turn % 3 == 0 ? K - 1 : turn % 3 == 1 ? K / 2 : 0;
      expect_plain_everywhere({.shape = {2, T, C, H, K, padding}});
    }
}

TEST_P(ConvKernels, EqualLoopsOfDoublesForAnyTapsOfAFewHeads) {
  // Softmax takes heads in groups, whose size depends on K.
  for (int64_t K = 1; K <= 70; ++K)
    for (const int64_t H : {3, 4, 9})
      expect_plain_everywhere({.shape = {1, 5, 2 * H, H, K, K / 2}});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWhereInputsAreFetched) {
  // Few taps and many, which are fetched differently, in two turns each.
  size_t turn = 0;
  for (const int64_t K : {5, 7, 16, 31})
    expect_plain_in_turn({.shape = {1, 301, 1024, 16, K, K / 2}}, turn++);
  for (const int64_t K : {24, 33})  // heads of odd widths
    expect_plain_in_turn({.shape = {2, 301, 405, 5, K, K - 1}}, turn++);
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWhereNothingStaysInTheCache) {
  for (const int64_t K : {3, 4, 7, 15, 20, 31, 63})
    for (const bool renormalize : {false, true})
      expect_plain_everywhere(
          {.shape = {4, 200, 128, 2, K, K / 2},
           .renormalize_edges = renormalize,
           .lengths = {200, 0, 130, 1},
           .streams_from = 1});
}

TEST_P(ConvKernels, AGradientThatIsNotWantedDoesNotChangeTheOther) {
  for (const int64_t R : {4, 64})
    for (const int64_t K : {3, 7, 15, 31, 70})
      for (const bool renormalize : {false, true})
        for (const bool dynamic : {false, true}) {
          Case c = {
              .shape = {2, 140, 2 * R, 2, K, K / 2},
              .renormalize_edges = renormalize,
              .lengths = {140, 90},
              .streams_from = K % 4 == 3 ? 1 : 1 << 30};
          if (K == 15)
            c.drop = {.p = 0.3, .seeded = true, .seed = 11};
          c.dynamic = dynamic;
          const Plain plain = plain_of(c);
          seqconv::internal::testing::in_turn(
              K / 2 + renormalize + dynamic,
              [&] { expect_the_same_alone<float, float>(plain); },
              [&] { expect_the_same_alone<BFloat16, float>(plain); });
        }
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWithDroppedTaps) {
  const TapDrop drop = {.p = 0.3, .seeded = true, .seed = 11};
  for (int64_t K = 1; K <= 70; ++K)
    expect_plain_everywhere({.shape = {2, 5, 6, 3, K, K / 2}, .drop = drop});
  // Random words are drawn for many rows of all heads, or for a row of one.
  for (const int64_t K : {3, 31})
    expect_plain_everywhere({.shape = {1, 150, 512, 16, K, K / 2}, .drop = drop});
  for (const int64_t K : {7, 15, 31})
    expect_plain_everywhere(
        {.shape = {2, 100, 64, 2, K, K / 2},
         .drop = drop,
         .lengths = {100, 70},
         .streams_from = 1});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWithAndWithoutSoftmax) {
  for (const bool softmax : {true, false})
    for (const int64_t K : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 63, 70}) {
      Case c = {.shape = {2, 5, 6, 3, K, K / 2}, .softmax = softmax, .lengths = {5, 3}};
      expect_plain_everywhere(c);
      c.drop = {.p = 0.3, .seeded = true, .seed = 11};
      expect_plain_everywhere(c);
    }
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWhereSoftmaxIsNotQuick) {
  for (const double extreme : {-std::numeric_limits<double>::infinity(), -1e30, -90.0, 90.0, 1e30})
    for (const int64_t K : {6, 7, 15, 16, 17, 31, 63, 70})
      for (const bool renormalize : {false, true})
        expect_plain_everywhere(
            {.shape = {2, 9, 8, 4, K, K / 2},
             .extreme = extreme,
             .renormalize_edges = renormalize,
             .lengths = {9, 8}});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWithEverythingAtOnce) {
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{64, 2}, {12, 4}})
    for (const int64_t K : {3, 7, 31})
      for (const bool renormalize : {false, true})
        expect_plain_everywhere(
            {.shape = {3, 70, C, H, K, K / 2},
             .renormalize_edges = renormalize,
             .drop = {.p = 0.3, .seeded = true, .seed = 11},
             .lengths = {70, 0, 13}});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWithHundredsOfTaps) {
  // The taps of a place are made in several blocks.
  for (const int64_t K : {65, 130, 200})
    for (const bool renormalize : {false, true})
      expect_plain_everywhere(
          {.shape = {2, 301, 36, 2, K, K / 3},
           .renormalize_edges = renormalize,
           .drop = {.p = 0.3, .seeded = true, .seed = 11},
           .lengths = {301, 170},
           .streams_from = K == 130 ? 1 : 1 << 30});
}

TEST_P(ConvKernels, ThousandsOfLargeLogitsAreStillShares) {
  constexpr int64_t K = 6144, T = 3;
  const std::vector<float> x(T, 1.0f), logits(T * K, 80.0f);
  for (const bool dynamic : {false, true}) {
    std::vector<float> y(T);
    const ConvForward<float, float> forward{
        .shape = {1, T, 1, 1, K, K / 2}, .x = x.data(), .logits = logits.data(), .y = y.data()};
    const Execution run{testing::serial, GetParam()};
    dynamic ? dynamicconv_forward(forward, run) : lightconv_forward<float>(forward, run);
    // Every position sees all three.
    for (const float sum : y)
      EXPECT_NEAR(sum, 3.0f / K, 1e-6f / K) << dynamic;
  }
}

/// [B, T, C] by one position after the other, from rings that are empty.
template <class S>
std::vector<S> stepped(const ConvForward<S, float>& args, bool dynamic, const Execution& run) {
  const ConvShape& s = args.shape;
  const int64_t K = s.kernel_size, C = s.channels, taps = s.heads * K;
  std::vector<S> ring(place(s.batch * (K - 1) * C)), x(place(s.batch * C)), y(x);
  std::vector<S> all(place(s.batch * s.steps * C));
  std::vector<float> logits(place(s.batch * taps));
  for (int64_t t = 0; t < s.steps; ++t) {
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t at = b * s.steps + t;
      std::copy_n(args.x + at * C, C, x.begin() + b * C);
      if (dynamic)
        std::copy_n(args.logits + at * taps, taps, logits.begin() + b * taps);
    }
    const ConvStep<S, float> step{
        .shape = {s.batch, 1, C, s.heads, K, K - 1},
        .x = x.data(),
        .logits = dynamic ? logits.data() : args.logits,
        .state = {ring.data(), K - 1, t},
        .y = y.data()};
    dynamic ? dynamicconv_step(step, run) : lightconv_step<S>(step, run);
    for (int64_t b = 0; b < s.batch; ++b)
      std::copy_n(y.begin() + b * C, C, all.begin() + (b * s.steps + t) * C);
  }
  return all;
}

TEST_P(ConvKernels, StepsEqualTheFullForm) {
  const Execution run{testing::serial, GetParam()};
  for (const int64_t K : {2, 7, 31})
    for (const auto& [C, H] : {std::pair<int64_t, int64_t>{5, 5}, {35, 7}, {160, 2}})
      for (const bool dynamic : {false, true}) {
        const ConvShape shape = {2, 40, C, H, K, K - 1};
        const auto x = draw<float>(random_, 2 * 40 * C);
        const auto logits = draw<float>(random_, (dynamic ? 2 * 40 : 1) * H * K);
        std::vector<float> y(x.size());
        const ConvForward<float, float> forward{
            .shape = shape, .x = x.data(), .logits = logits.data(), .y = y.data()};
        dynamic ? dynamicconv_forward(forward, run) : lightconv_forward<float>(forward, run);
        const auto steps = stepped(forward, dynamic, run);
        EXPECT_LE(relative_error(steps, testing::wide(y)), bound<float>())
            << K << " taps, " << C << " channels of " << H << " heads, dynamic " << dynamic;
      }
}

TEST_P(ConvKernels, BiasGradientsEqualSums) {
  const ConvShape shape = {3, 70, 131, 1, 1, 0};
  const int64_t lengths[] = {70, 0, 13};
  const auto grad_y = draw<float>(random_, 3 * 70 * 131);
  std::vector<float> got(131);
  bias_gradient(shape, lengths, nullptr, grad_y.data(), got.data(), {testing::serial, GetParam()});
  std::vector<double> want(131);
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t t = 0; t < lengths[b]; ++t)
      for (int64_t c = 0; c < 131; ++c)
        want[place(c)] += grad_y[place((b * 70 + t) * 131 + c)];
  EXPECT_LE(relative_error(got, want), bound<float>());
}

}  // namespace
}  // namespace seqconv::internal::kernels
