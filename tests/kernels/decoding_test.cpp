#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/conv.h"
#include "kernels/decoding/decoding_ops.h"
#include "kernels/kernel_support.h"

/// The loops of decoding against the same things said in doubles.
namespace seqconv::internal::kernels {
namespace {

using testing::draw;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Rows of their own memory, each as long as needed and no longer.
class Rows {
 public:
  Rows(std::mt19937& random, int64_t count, int64_t channels) {
    for (int64_t i = 0; i < count; ++i)
      rows_.push_back(draw<float>(random, channels));
    for (const auto& row : rows_)
      pointers_.push_back(row.data());
  }
  const float* const* pointers() const { return pointers_.data(); }
  double at(int64_t row, int64_t channel) const {
    return rows_[static_cast<size_t>(row)][static_cast<size_t>(channel)];
  }

 private:
  std::vector<std::vector<float>> rows_;
  std::vector<const float*> pointers_;
};

struct Sizes {
  int64_t heads;
  int64_t head_channels;
  int64_t count;
};
constexpr Sizes kSizes[] = {
    {1, 1, 1},
    {1, 31, 2},
    {2, 32, 3},
    {3, 33, 5},
    {4, 64, 31},
    {2, 100, 7},
    {5, 3, 40},
    {1, 8, 600}};

/// Heads that share vectors: of whole ones, and of what is left.
constexpr Sizes kNarrow[] = {
    {64, 1, 4}, {37, 1, 31}, {40, 2, 3}, {25, 3, 5}, {19, 4, 4}, {8, 8, 31}, {9, 8, 2}, {5, 12, 3}};

class DecodingLoops : public ::testing::TestWithParam<Isa> {
 protected:
  const DecodingOps& ops() const { return decoding_ops(GetParam()); }

  std::mt19937 random_{1};
};

TEST_P(DecodingLoops, WeightRowsHeadByHead) {
  for (const auto& [H, R, count] : kSizes) {
    const int64_t C = H * R, stride = count + 3;
    const Rows rows(random_, count, C);
    const auto taps = draw<float>(random_, H * stride);
    const auto bias = draw<float>(random_, C);
    for (const bool biased : {false, true}) {
      std::vector<float> y(static_cast<size_t>(C));
      ops().weigh(
          {.heads = H,
           .channels = C,
           .taps = taps.data(),
           .tap_stride = stride,
           .bias = biased ? bias.data() : nullptr},
          {rows.pointers(), count},
          y.data());
      for (int64_t c = 0; c < C; ++c) {
        double sum = biased ? bias[static_cast<size_t>(c)] : 0.0, size = 1;
        for (int64_t j = 0; j < count; ++j) {
          const double part = taps[static_cast<size_t>(c / R * stride + j)] * rows.at(j, c);
          sum += part;
          size += std::abs(part);
        }
        EXPECT_NEAR(y[static_cast<size_t>(c)], sum, 1e-6 * size)
            << H << " " << R << " " << count << " " << c;
      }
    }
  }
}

TEST_P(DecodingLoops, WeightRowsOfNarrowHeadsChannelByChannel) {
  for (const auto& [H, R, count] : kNarrow) {
    const int64_t C = H * R, stride = count + 3;
    const Rows rows(random_, count, C);
    auto taps = draw<float>(random_, H * stride);
    for (float& tap : taps)
      tap *= 1.1F;  // products that are not exact
    const auto bias = draw<float>(random_, C);
    std::vector<float> spread;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < C; ++c)
        spread.push_back(taps[static_cast<size_t>(c / R * stride + j)]);
    for (const float* const added : {bias.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> y(static_cast<size_t>(C)), by_channel(y), alone(y);
      const SeenRows x{rows.pointers(), count};
      ops().weigh(
          {.heads = H, .channels = C, .taps = taps.data(), .tap_stride = stride, .bias = added},
          x,
          y.data());
      ops().weigh_by_channel(
          {.channels = C, .taps = spread.data(), .bias = added}, x, by_channel.data());
      EXPECT_EQ(y, by_channel) << H << " " << R << " " << count;
      for (int64_t h = 0; h < H; ++h) {
        std::vector<const float*> own;
        for (int64_t j = 0; j < count; ++j)
          own.push_back(x.rows[j] + h * R);
        ops().weigh(
            {.channels = R,
             .taps = taps.data() + h * stride,
             .bias = added == nullptr ? nullptr : added + h * R},
            {own.data(), count},
            alone.data() + h * R);
      }
      EXPECT_EQ(y, alone) << H << " " << R << " " << count;
      for (int64_t c = 0; c < C; ++c) {
        double sum = added == nullptr ? 0.0 : added[c], size = 1;
        for (int64_t j = 0; j < count; ++j) {
          const double part = double{taps[static_cast<size_t>(c / R * stride + j)]} * rows.at(j, c);
          sum += part;
          size += std::abs(part);
        }
        EXPECT_NEAR(y[static_cast<size_t>(c)], sum, 1e-6 * size) << H << " " << R << " " << c;
      }
    }
  }
}

TEST_P(DecodingLoops, AttendAsTheSoftmaxOfScaledProducts) {
  for (const auto& [H, R, count] : kSizes) {
    const int64_t C = H * R;
    const Rows keys(random_, count, C), values(random_, count, C);
    const auto query = draw<float>(random_, C);
    std::vector<float> y(static_cast<size_t>(C));
    std::vector<float> scores(static_cast<size_t>(H * count));
    ops().attend(
        {.heads = H,
         .channels = C,
         .query = query.data(),
         .keys = keys.pointers(),
         .values = values.pointers(),
         .count = count,
         .scores = scores.data()},
        y.data());
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double> weights;
      double total = 0;
      for (int64_t s = 0; s < count; ++s) {
        double product = 0;
        for (int64_t c = h * R; c < (h + 1) * R; ++c)
          product += query[static_cast<size_t>(c)] * keys.at(s, c);
        weights.push_back(std::exp(product / std::sqrt(static_cast<double>(R))));
        total += weights.back();
      }
      for (int64_t c = h * R; c < (h + 1) * R; ++c) {
        double sum = 0;
        for (int64_t s = 0; s < count; ++s)
          sum += weights[static_cast<size_t>(s)] / total * values.at(s, c);
        EXPECT_NEAR(y[static_cast<size_t>(c)], sum, 2e-6)
            << H << " " << R << " " << count << " " << c;
      }
    }
  }
}

TEST_P(DecodingLoops, AttendToASourceAsToItsRows) {
  for (const auto& [H, R, count] :
       {std::tuple{1, 1, 1}, {2, 5, 3}, {4, 16, 24}, {3, 33, 16}, {8, 64, 50}}) {
    const int64_t C = int64_t{H} * R, rows = 9;
    const int64_t stride = (count + 15) / 16 * 16;
    const Rows keys(random_, count, C), values(random_, count, C);
    std::vector<float> transposed(static_cast<size_t>(C * stride));
    std::vector<float> dense;
    for (int64_t s = 0; s < count; ++s)
      for (int64_t c = 0; c < C; ++c) {
        transposed[static_cast<size_t>(c * stride + s)] = keys.at(s, c);
        dense.push_back(values.at(s, c));
      }
    const SeenSource source = {
        .heads = H,
        .channels = C,
        .count = count,
        .stride = stride,
        .keys = transposed.data(),
        .values = dense.data(),
        .value_stride = C};
    auto queries = draw<float>(random_, rows * C);
    queries[static_cast<size_t>(5 * C)] = std::nanf("");  // of one row alone
    std::vector<float> y(queries.size());
    std::vector<float> scores(
        static_cast<size_t>(std::max<int64_t>(kSourceRowsAtMost * stride, H * count)));
    ops().attend_source(source, rows, queries.data(), scores.data(), y.data());
    for (int64_t r = 0; r < rows; ++r) {
      const float* const query = queries.data() + r * C;
      const float* const found = y.data() + r * C;
      std::vector<float> alone(static_cast<size_t>(C)), wanted(alone);
      ops().attend_source(source, 1, query, scores.data(), alone.data());
      EXPECT_EQ(std::memcmp(alone.data(), found, alone.size() * 4), 0);
      ops().attend(
          {.heads = H,
           .channels = C,
           .query = query,
           .keys = keys.pointers(),
           .values = values.pointers(),
           .count = count,
           .scores = scores.data()},
          wanted.data());
      for (int64_t c = 0; c < C; ++c)
        if (r == 5 && c < R)
          EXPECT_TRUE(std::isnan(found[c])) << c;
        else
          EXPECT_NEAR(found[c], wanted[static_cast<size_t>(c)], 4e-6)
              << H << " " << R << " " << count << " " << r << " " << c;
    }
  }
}

TEST_P(DecodingLoops, GateAnAverage) {
  for (const int64_t C : {1, 7, 16, 65}) {
    const auto x = draw<float>(random_, C), average = draw<float>(random_, C);
    const auto gates = draw<float>(random_, 2 * C);
    auto y = x;  // in place
    ops().gate({y.data(), average.data(), gates.data()}, C, y.data());
    const auto sigmoid = [&](int64_t i) {
      return 1 / (1 + std::exp(-double{gates[static_cast<size_t>(i)]}));
    };
    for (int64_t c = 0; c < C; ++c) {
      const auto i = static_cast<size_t>(c);
      EXPECT_NEAR(y[i], x[i] * sigmoid(c) + average[i] * sigmoid(C + c), 1e-6);
    }
  }
}

TEST_P(DecodingLoops, NormaliseLogarithms) {
  for (const int64_t count : {1, 2, 15, 16, 511, 512, 513, 2000}) {
    auto x = draw<float>(random_, count);
    for (float& value : x)
      value = 20 * value + 300;
    if (count > 2)
      x[1] = -kInfinity;
    double total = 0;
    for (const float value : x)
      total += std::exp(double{value} - 300);
    auto y = x;
    ops().log_softmax(y.data(), count);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isinf(x[i]))
        EXPECT_EQ(y[i], -kInfinity);
      else
        EXPECT_NEAR(y[i], x[i] - 300 - std::log(total), 5e-5);
    }
    x[0] = std::nanf("");
    ops().log_softmax(x.data(), count);
    for (const float value : x)
      EXPECT_TRUE(std::isnan(value)) << count;
  }
}

TEST_P(DecodingLoops, KnowWhatNormalisesARowAsItIsNormalised) {
  for (const int64_t count : {1, 2, 63, 64, 65, 511, 512, 513, 2000})
    for (const float first : {0.3F, 500.0F, -kInfinity, std::nanf("")}) {
      auto x = draw<float>(random_, count);
      x[0] = first;
      std::vector<float> maxima(static_cast<size_t>(count / kMaximaBlock));
      const SoftmaxTerms terms = ops().softmax_terms(x.data(), count, maxima.data());
      auto y = x;
      ops().log_softmax(y.data(), count);
      for (size_t i = 0; i < x.size(); ++i) {
        const float own = (x[i] - terms.maximum) - terms.log_sum;
        if (std::isnan(y[i]))
          EXPECT_TRUE(std::isnan(own));
        else
          EXPECT_EQ(own, y[i]) << count << " " << first << " " << i;
      }
      for (size_t b = 0; b < maxima.size(); ++b) {
        float largest = -kInfinity;
        for (size_t i = b * kMaximaBlock; i < (b + 1) * kMaximaBlock; ++i)
          largest = std::fmax(largest, x[i]);
        EXPECT_EQ(maxima[b], largest);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryIsa, DecodingLoops, ::testing::ValuesIn(supported_isas()), testing::isa_name);

/// Taps [K] of one head, made from logits by hand.
std::vector<float> made(const TapMaker& maker, const float* logits, int64_t n) {
  std::vector<float> taps(static_cast<size_t>(maker.size()));
  maker.make(logits, n, taps.data());
  taps.resize(static_cast<size_t>(maker.kernel_size));
  return taps;
}

TEST(TapMaker, GivesNoWeightToInputsThatAreNotThere) {
  std::mt19937 random(1);
  for (const int64_t K : {1, 2, 3, 4, 5, 16, 17, 31, 63}) {
    auto logits = draw<float>(random, K);
    logits[0] = 200;  // were it not cut, nothing would be left of the others
    const TapMaker maker{.renormalize_edges = true, .kernel_size = K};
    for (int64_t seen = 1; seen <= K; ++seen) {
      const std::vector<float> taps = made(maker, logits.data(), seen);
      double total = 0;
      for (int64_t j = K - seen; j < K; ++j)
        total += std::exp(double{logits[static_cast<size_t>(j)]} - 200);
      for (int64_t j = 0; j < K; ++j) {
        const auto i = static_cast<size_t>(j);
        const double exact = j < K - seen ? 0.0 : std::exp(double{logits[i]} - 200) / total;
        EXPECT_NEAR(taps[i], exact, 1e-6) << K << " " << seen << " " << j;
      }
    }
  }
}

constexpr Normalization kNormalizations[] = {
    Normalization::kNone,
    Normalization::kSoftmax,
    Normalization::kSigmoid,
    Normalization::kTanh,
    Normalization::kSquare,
    Normalization::kAbs,
    Normalization::kL1,
    Normalization::kL2,
    Normalization::kAbsL1,
    Normalization::kAbsL2};

/// The tap of logit w, as the definition of Normalization says, where |w| adds
/// up to `sum` and w^2 to `squares`.
double tap_of(Normalization normalization, double w, double sum, double squares) {
  const double l1 = sum + kNormEpsilon, l2 = std::sqrt(squares) + kNormEpsilon;
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:
      return w;
    case Normalization::kSigmoid:
      return 1 / (1 + std::exp(-w));
    case Normalization::kTanh:
      return std::tanh(w);
    case Normalization::kSquare:
      return w * w;
    case Normalization::kAbs:
      return std::abs(w);
    case Normalization::kL1:
      return w / l1;
    case Normalization::kL2:
      return w / l2;
    case Normalization::kAbsL1:
      return std::abs(w) / l1;
    case Normalization::kAbsL2:
      return std::abs(w) / l2;
  }
  return 0;
}

/// Of every instruction set.
TEST(DecodingOps, NormalisedTapsAreThoseOfTheDefinition) {
  std::mt19937 random(1);
  for (const Isa isa : supported_isas())
    for (const Normalization normalization : kNormalizations)
      for (const int64_t K : {1, 3, 5, 8, 15, 17, 31, 70}) {
        const auto logits = draw<float>(random, K);
        std::vector<float> taps = logits;
        taps.push_back(7);
        decoding_ops(isa).normalize(normalization, taps.data(), K);
        double sum = 0, squares = 0;
        for (const double w : logits) {
          sum += std::abs(w);
          squares += w * w;
        }
        for (size_t j = 0; j < logits.size(); ++j) {
          const double want = tap_of(normalization, logits[j], sum, squares);
          EXPECT_NEAR(taps[j], want, 1e-6 * (1 + std::abs(want)))
              << target_name(isa) << " " << static_cast<int>(normalization) << ", K " << K
              << ", tap " << j;
        }
        EXPECT_EQ(taps.back(), 7);
      }
}

TEST(TapMaker, NormalisesEveryHeadByItself) {
  std::mt19937 random(1);
  for (const int64_t K : {1, 3, 5, 31}) {
    constexpr int64_t kHeads = 5;
    const auto logits = draw<float>(random, kHeads * K);
    for (const Normalization normalization : kNormalizations) {
      const TapMaker all{.normalization = normalization, .heads = kHeads, .kernel_size = K};
      const TapMaker one{.normalization = normalization, .kernel_size = K};
      std::vector<float> taps(static_cast<size_t>(all.size()));
      all.make(logits.data(), K, taps.data());
      for (int64_t h = 0; h < kHeads; ++h) {
        const std::vector<float> own = made(one, logits.data() + h * K, K);
        EXPECT_TRUE(std::equal(own.begin(), own.end(), taps.begin() + h * all.stride()));
        if (normalization == Normalization::kNone) {
          EXPECT_TRUE(std::equal(own.begin(), own.end(), logits.begin() + h * K));
        }
      }
    }
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
