#include <gtest/gtest.h>

#include "kernels/kernel_support.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/dynamicconv.h"
#include "seqconv/kernels/lightconv.h"

/// lightconv and dynamicconv against the same thing said in loops of doubles.
namespace seqconv::kernels {
namespace {

using testing::bound;
using testing::draw;
using testing::place;
using testing::relative_error;
using testing::wide;

struct Case {
  ConvShape shape;
  bool dynamic = false;
  bool renormalize_edges = false;
  TapDrop drop;
  std::vector<int64_t> lengths;
  int64_t cache_bytes = 0;

  int64_t valid(int64_t b) const {
    return lengths.empty() ? shape.steps : lengths[place(b)];
  }
  int64_t kernel_count() const {
    return (dynamic ? shape.batch * shape.steps : 1) * shape.heads *
        shape.kernel_size;
  }
  /// Where the kernel of a position and head begins.
  int64_t kernel(int64_t b, int64_t t, int64_t h) const {
    const int64_t at = dynamic ? b * shape.steps + t : 0;
    return (at * shape.heads + h) * shape.kernel_size;
  }
};

/// Forward and backward pass of one position and head.
struct Plain {
  const Case& c;
  std::vector<double> x, kernels, grad_y;
  std::vector<double> y, grad_x, grad_kernels;

  double keep(int64_t i) const {
    if (!c.drop.seeded)
      return 1;
    return random_word(c.drop.seed, static_cast<uint64_t>(i)) >=
            drop_threshold(c.drop.p)
        ? 1 / (1 - c.drop.p)
        : 0;
  }

  void run() {
    const ConvShape& s = c.shape;
    y.assign(x.size(), 0);
    grad_x.assign(x.size(), 0);
    grad_kernels.assign(kernels.size(), 0);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t t = 0; t < c.valid(b); ++t)
        for (int64_t h = 0; h < s.heads; ++h)
          position(b, t, h);
  }

  void position(int64_t b, int64_t t, int64_t h) {
    const ConvShape& s = c.shape;
    const int64_t K = s.kernel_size, R = s.head_channels();
    const int64_t raw = c.kernel(b, t, h);
    std::vector<double> w(place(K)), grad(place(K));
    double sum = 0;
    const auto inside = [&](int64_t j) {
      const int64_t from = t - s.padding_left + j;
      return from >= 0 && from < c.valid(b);
    };
    for (int64_t j = 0; j < K; ++j) {
      if (!c.renormalize_edges || inside(j))
        w[place(j)] = std::exp(kernels[place(raw + j)]);
      sum += w[place(j)];
    }
    for (double& tap : w)
      tap /= sum;
    for (int64_t j = 0; j < K; ++j)
      for (int64_t i = 0; inside(j) && i < R; ++i) {
        const int64_t at = (b * s.steps + t) * s.channels + h * R + i;
        const int64_t from = at + (j - s.padding_left) * s.channels;
        const double tap = w[place(j)] * keep(raw + j);
        y[place(at)] += tap * x[place(from)];
        grad_x[place(from)] += tap * grad_y[place(at)];
        grad[place(j)] += keep(raw + j) * grad_y[place(at)] * x[place(from)];
      }
    double mean = 0;
    for (int64_t j = 0; j < K; ++j)
      mean += w[place(j)] * grad[place(j)];
    for (int64_t j = 0; j < K; ++j)
      grad_kernels[place(raw + j)] += w[place(j)] * (grad[place(j)] - mean);
  }
};

class ConvKernels : public ::testing::TestWithParam<Isa> {
 protected:
  template <class S, class L>
  void expect_plain(const Case& c) {
    SCOPED_TRACE(
        ::testing::Message()
        << (c.dynamic ? "dynamic" : "light") << " B " << c.shape.batch << " T "
        << c.shape.steps << " C " << c.shape.channels << " H " << c.shape.heads
        << " K " << c.shape.kernel_size << " padding " << c.shape.padding_left);
    const int64_t count = c.shape.batch * c.shape.steps * c.shape.channels;
    const auto x = draw<S>(random_, count), grad_y = draw<S>(random_, count);
    const auto kernels = draw<L>(random_, c.kernel_count());
    Plain plain{c, wide(x), wide(kernels), wide(grad_y), {}, {}, {}};
    plain.run();
    testing::Lines<S> y(x.size()), grad_x(x.size());
    std::vector<L> grad_kernels(kernels.size());
    const int64_t* const lengths =
        c.lengths.empty() ? nullptr : c.lengths.data();
    const Execution run{testing::in_pieces(3), GetParam(), c.cache_bytes};
    const ConvForward<S, L> forward{
        .shape = c.shape,
        .renormalize_edges = c.renormalize_edges,
        .drop = c.drop,
        .x = x.data(),
        .kernels = kernels.data(),
        .lengths = lengths,
        .y = y.data()};
    const ConvBackward<S, L> backward{
        .shape = c.shape,
        .renormalize_edges = c.renormalize_edges,
        .drop = c.drop,
        .x = x.data(),
        .kernels = kernels.data(),
        .lengths = lengths,
        .grad_y = grad_y.data(),
        .grad_x = grad_x.data(),
        .grad_kernels = grad_kernels.data()};
    if (c.dynamic) {
      dynamicconv_forward(forward, run);
      dynamicconv_backward(backward, run);
    } else if constexpr (std::is_same_v<L, AccumulatorOf<S>>) {
      lightconv_forward<S>(forward, run);
      lightconv_backward<S>(backward, run);
    }
    EXPECT_LE(relative_error(y, plain.y), bound<S>()) << "y";
    EXPECT_LE(relative_error(grad_x, plain.grad_x), bound<S>()) << "grad_x";
    EXPECT_LE(relative_error(grad_kernels, plain.grad_kernels), bound<L>())
        << "gradient of the kernels";
  }

  /// Both convolutions in all types.
  void expect_plain_everywhere(Case c) {
    c.dynamic = false;
    expect_plain<float, float>(c);
    expect_plain<double, double>(c);
    expect_plain<BFloat16, float>(c);
    c.dynamic = true;
    expect_plain<float, float>(c);
    expect_plain<double, double>(c);
    expect_plain<BFloat16, float>(c);
    expect_plain<BFloat16, BFloat16>(c);
  }

  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(
    Isas,
    ConvKernels,
    ::testing::ValuesIn(supported_isas()),
    testing::isa_name);

TEST_P(ConvKernels, EqualLoopsOfDoublesOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kWidths[] =
      {{6, 2}, {5, 5}, {35, 7}, {32, 2}, {60, 1}, {128, 2}, {48, 2}, {40, 40}};
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
  for (const int64_t K : {5, 7, 16, 31})
    expect_plain_everywhere({.shape = {1, 301, 1024, 16, K, K / 2}});
  for (const int64_t K : {24, 33})  // heads of odd widths
    expect_plain_everywhere({.shape = {2, 301, 405, 5, K, K - 1}});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWhereNothingStaysInTheCache) {
  for (const int64_t K : {3, 4, 7, 15, 20, 31, 63})
    for (const bool renormalize : {false, true})
      expect_plain_everywhere(
          {.shape = {5, 200, 128, 2, K, K / 2},
           .renormalize_edges = renormalize,
           .lengths = {200, 0, 130, 1, 200},
           .cache_bytes = 1});
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWithDroppedTaps) {
  const TapDrop drop = {.p = 0.3, .seeded = true, .seed = 11};
  for (int64_t K = 1; K <= 70; ++K)
    expect_plain_everywhere({.shape = {2, 5, 6, 3, K, K / 2}, .drop = drop});
  // Random words are drawn for many rows of all heads, or for a row of one.
  for (const int64_t K : {3, 31})
    expect_plain_everywhere(
        {.shape = {1, 150, 512, 16, K, K / 2}, .drop = drop});
  for (const int64_t K : {7, 15, 31})
    expect_plain_everywhere(
        {.shape = {2, 100, 64, 2, K, K / 2},
         .drop = drop,
         .lengths = {100, 70},
         .cache_bytes = 1});
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

}  // namespace
}  // namespace seqconv::kernels
