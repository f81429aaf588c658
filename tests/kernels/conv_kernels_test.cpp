#include <gtest/gtest.h>

#include <complex>
#include <limits>

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
  Normalization normalization = Normalization::kSoftmax;
  double extreme = 0;  ///< some logits are this instead, if it is not 0
  bool dynamic = false;
  bool renormalize_edges = false;
  TapDrop drop;
  std::vector<int64_t> lengths;
  int64_t cache_bytes = 0;

  int64_t valid(int64_t b) const {
    return lengths.empty() ? shape.steps : lengths[place(b)];
  }
  int64_t logit_count() const {
    return (dynamic ? shape.batch * shape.steps : 1) * shape.heads *
        shape.kernel_size;
  }
  /// The number of the first logit of a position and head.
  int64_t first_logit(int64_t b, int64_t t, int64_t h) const {
    const int64_t at = dynamic ? b * shape.steps + t : 0;
    return (at * shape.heads + h) * shape.kernel_size;
  }
};

/// A number whose imaginary part, if it is tiny, becomes the derivative of
/// what is made of it.
using Number = std::complex<double>;

Number absolute(Number v) {
  if (v.real() == 0)
    return 0;  // and so is its derivative, by definition
  return v.real() < 0 ? -v : v;
}

/// The taps of logits w, as the definition of Normalization says.
std::vector<Number> taps_of(
    Normalization normalization,
    std::vector<Number> w) {
  Number exps, sum, squares;
  for (const Number v : w) {
    if (normalization == Normalization::kSoftmax)
      exps += std::exp(v);
    sum += absolute(v);
    squares += v * v;
  }
  const Number length = std::sqrt(squares) + kNormEpsilon;
  sum += kNormEpsilon;
  for (Number& v : w)
    v = [&]() -> Number {
      switch (normalization) {
        case Normalization::kNone:
          return v;
        case Normalization::kSoftmax:
          return std::exp(v) / exps;
        case Normalization::kSigmoid:
          return 1.0 / (1.0 + std::exp(-v));
        case Normalization::kTanh:
          return std::tanh(v);
        case Normalization::kSquare:
          return v * v;
        case Normalization::kAbs:
          return absolute(v);
        case Normalization::kL1:
          return v / sum;
        case Normalization::kL2:
          return v / length;
        case Normalization::kAbsL1:
          return absolute(v) / sum;
        case Normalization::kAbsL2:
          return absolute(v) / length;
      }
      return {};
    }();
  return w;
}

/// Forward and backward pass of one position and head.
struct Plain {
  const Case& c;
  std::vector<double> x, logits, grad_y;
  std::vector<double> y, grad_x, grad_logits;

  int64_t K() const { return c.shape.kernel_size; }

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
    grad_logits.assign(logits.size(), 0);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t t = 0; t < c.valid(b); ++t)
        for (int64_t h = 0; h < s.heads; ++h)
          position(b, t, h);
  }

  void position(int64_t b, int64_t t, int64_t h) {
    const ConvShape& s = c.shape;
    const int64_t K = this->K(), R = s.head_channels();
    const int64_t first = c.first_logit(b, t, h);
    std::vector<double> grad(place(K));
    const auto inside = [&](int64_t j) {
      const int64_t from = t - s.padding_left + j;
      return from >= 0 && from < c.valid(b);
    };
    const std::vector<double> w = c.normalization == Normalization::kSoftmax
        ? softmax(first, inside)
        : normalized(first);
    const auto row = [&](int64_t of) {
      return place((b * s.steps + of) * s.channels + h * R);
    };
    const size_t at = row(t);
    for (int64_t j = 0; j < K; ++j) {
      if (!inside(j))
        continue;
      const size_t from = row(t - s.padding_left + j);
      const double kept = keep(first + j), tap = w[place(j)] * kept;
      for (size_t i = 0; i < place(R); ++i) {
        y[at + i] += tap * x[from + i];
        grad_x[from + i] += tap * grad_y[at + i];
        grad[place(j)] += kept * grad_y[at + i] * x[from + i];
      }
    }
    if (c.normalization == Normalization::kSoftmax)
      softmax_backward(first, w, grad);
    else
      normalized_backward(first, grad);
  }

  /// Over the taps that are inside, if it is over these alone.
  template <class Inside>
  std::vector<double> softmax(int64_t first, const Inside& inside) const {
    std::vector<double> w(logits.begin() + first, logits.begin() + first + K());
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < K(); ++j) {
      if (c.renormalize_edges && !inside(j))
        w[place(j)] = -std::numeric_limits<double>::infinity();
      max = std::max(max, w[place(j)]);
    }
    for (double& tap : w)
      sum += tap = std::exp(tap - max);
    for (double& tap : w)
      tap /= sum;
    return w;
  }

  void softmax_backward(
      int64_t first,
      const std::vector<double>& w,
      const std::vector<double>& grad) {
    double mean = 0;
    for (size_t j = 0; j < w.size(); ++j)
      mean += w[j] * grad[j];
    for (size_t j = 0; j < w.size(); ++j)
      grad_logits[place(first) + j] += w[j] * (grad[j] - mean);
  }

  std::vector<Number> logit_numbers(int64_t first) const {
    const auto from = logits.begin() + first;
    return {from, from + K()};
  }

  std::vector<double> normalized(int64_t first) const {
    std::vector<double> w;
    for (const Number tap : taps_of(c.normalization, logit_numbers(first)))
      w.push_back(tap.real());
    return w;
  }

  void normalized_backward(int64_t first, const std::vector<double>& grad) {
    constexpr double kTiny = 1e-40;
    for (size_t i = 0; i < grad.size(); ++i) {
      std::vector<Number> w = logit_numbers(first);
      w[i] += Number(0, kTiny);
      const auto taps = taps_of(c.normalization, w);
      for (size_t j = 0; j < grad.size(); ++j)
        grad_logits[place(first) + i] += grad[j] * taps[j].imag() / kTiny;
    }
  }
};

class ConvKernels : public ::testing::TestWithParam<Isa> {
 protected:
  template <class S, class L>
  void expect_plain(const Case& c) {
    SCOPED_TRACE(
        ::testing::Message()
        << (c.dynamic ? "dynamic" : "light") << " normalization "
        << static_cast<int>(c.normalization) << " B " << c.shape.batch << " T "
        << c.shape.steps << " C " << c.shape.channels << " H " << c.shape.heads
        << " K " << c.shape.kernel_size << " padding " << c.shape.padding_left);
    const int64_t count = c.shape.batch * c.shape.steps * c.shape.channels;
    const auto x = draw<S>(random_, count), grad_y = draw<S>(random_, count);
    auto logits = draw<L>(random_, c.logit_count());
    if (c.extreme != 0)
      for (size_t i = 0; i < logits.size(); i += 5)
        logits[i] = testing::stored<L>(c.extreme);
    Plain plain{c, wide(x), wide(logits), wide(grad_y), {}, {}, {}};
    plain.run();
    testing::Lines<S> y(x.size()), grad_x(x.size());
    std::vector<L> grad_logits(logits.size());
    const int64_t* const lengths =
        c.lengths.empty() ? nullptr : c.lengths.data();
    const Execution run{testing::in_chunks(3), GetParam(), c.cache_bytes};
    const ConvForward<S, L> forward{
        .shape = c.shape,
        .normalization = c.normalization,
        .renormalize_edges = c.renormalize_edges,
        .drop = c.drop,
        .x = x.data(),
        .logits = logits.data(),
        .lengths = lengths,
        .y = y.data()};
    const ConvBackward<S, L> backward{
        .shape = c.shape,
        .normalization = c.normalization,
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

TEST_P(ConvKernels, EqualLoopsOfDoublesWithEveryNormalization) {
  for (int n = 0; n <= static_cast<int>(Normalization::kAbsL2); ++n)
    for (const int64_t K : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 63, 70}) {
      // A single tap divided by its norm has next to no gradient: what is left
      // of two large terms.
      if (K == 1 && n >= static_cast<int>(Normalization::kL1))
        continue;
      Case c = {
          .shape = {2, 5, 6, 3, K, K / 2},
          .normalization = static_cast<Normalization>(n),
          .lengths = {5, 3}};
      expect_plain_everywhere(c);
      c.drop = {.p = 0.3, .seeded = true, .seed = 11};
      expect_plain_everywhere(c);
    }
}

TEST_P(ConvKernels, EqualLoopsOfDoublesWhereSoftmaxIsNotQuick) {
  for (const double extreme :
       {-std::numeric_limits<double>::infinity(), -1e30, -90.0, 90.0, 1e30})
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

}  // namespace
}  // namespace seqconv::kernels
