#include "kernels/fused/elementwise_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"
#include "kernels/common/chunks.h"
#include "kernels/dropout.h"
#include "kernels/kernel_support.h"

/// The loops of every instruction set against the definitions, which the tests
/// of the passes check for the best one only.
namespace seqconv::internal::kernels {
namespace {

using testing::bound;
using testing::draw;
using testing::place;
using testing::relative_error;
using testing::stored;
using testing::value;

// More than a tile, and whole vectors of no instruction set.
constexpr int64_t kCount = kTile + 93;
constexpr Dropout kDrop{.p = 0.3, .seed = 17};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Of element i.
double keep(int64_t i) {
  const bool kept = random_word(kDrop.seed, static_cast<uint64_t>(i)) >= drop_threshold(kDrop.p);
  return kept ? 1 / (1 - kDrop.p) : 0;
}

/// want(i) for kCount elements.
std::vector<double> table(const std::function<double(int64_t)>& want) {
  std::vector<double> values;
  for (int64_t i = 0; i < kCount; ++i)
    values.push_back(want(i));
  return values;
}

class ElementwiseOpsTest : public ::testing::TestWithParam<Isa> {
 protected:
  std::mt19937 random_{3};

  /// Runs `body` on tensors of float and double.
  template <class Body>
  void for_types(const Body& body) {
    body(float{});
    body(double{});
  }

  template <class T>
  static void expect_equals(const std::vector<T>& got, const std::function<double(int64_t)>& want) {
    EXPECT_LE(relative_error(got, table(want)), bound<T>());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas, ElementwiseOpsTest, ::testing::ValuesIn(supported_isas()), testing::isa_name);

TEST_P(ElementwiseOpsTest, DropoutFollowsItsDefinition) {
  for_types([&]<class T>(T) {
    const ElementwiseOps<T>& ops = elementwise_ops<T>(GetParam());
    const auto x = draw<T>(random_, kCount), r = draw<T>(random_, kCount);
    std::vector<T> y(place(kCount));
    ops.dropout(x.data(), y.data(), 0, kCount, kDrop);
    expect_equals(y, [&](int64_t i) { return x[place(i)] * keep(i); });
    ops.dropout_add(x.data(), r.data(), y.data(), 0, kCount, kDrop);
    expect_equals(y, [&](int64_t i) { return r[place(i)] + x[place(i)] * keep(i); });
    ops.dropout_add(x.data(), r.data(), y.data(), 0, kCount, {});
    expect_equals(y, [&](int64_t i) { return r[place(i)] + x[place(i)]; });
  });
}

TEST_P(ElementwiseOpsTest, ActivationsFollowTheirDefinitions) {
  for_types([&]<class T>(T) {
    const ElementwiseOps<T>& ops = elementwise_ops<T>(GetParam());
    const auto x = draw<T>(random_, kCount), g = draw<T>(random_, kCount);
    std::vector<T> y(place(kCount));
    const T* const saved = x.data();
    for (const bool dropped : {false, true}) {
      const Dropout drop = dropped ? kDrop : Dropout{};
      const auto factor = [&](int64_t i) { return dropped ? keep(i) : 1.0; };
      ops.relu(saved, y.data(), 0, kCount, drop);
      expect_equals(y, [&](int64_t i) { return std::max<double>(x[place(i)], 0) * factor(i); });
      ops.swish(saved, y.data(), 0, kCount, drop);
      expect_equals(y, [&](int64_t i) { return x[place(i)] * sigmoid(x[place(i)]) * factor(i); });
      ops.swish_backward(saved, g.data(), y.data(), 0, kCount, drop);
      expect_equals(y, [&](int64_t i) {
        const double v = x[place(i)], s = sigmoid(v);
        return g[place(i)] * factor(i) * (s + v * s * (1 - s));
      });
    }
    ops.relu_backward(saved, g.data(), y.data(), 0, kCount, {.p = 0.5});
    expect_equals(y, [&](int64_t i) { return x[place(i)] > 0 ? 2.0 * g[place(i)] : 0; });
  });
}

TEST_P(ElementwiseOpsTest, GatesFollowTheirDefinition) {
  for_types([&]<class T>(T) {
    const ElementwiseOps<T>& ops = elementwise_ops<T>(GetParam());
    const auto x = draw<T>(random_, 2 * kCount), g = draw<T>(random_, kCount);
    std::vector<T> y(place(kCount)), grad(place(2 * kCount));
    ops.glu(x.data(), y.data(), kCount);
    const auto gate = [&](int64_t i) { return sigmoid(x[place(kCount + i)]); };
    expect_equals(y, [&](int64_t i) { return x[place(i)] * gate(i); });
    ops.glu_backward(x.data(), g.data(), grad.data(), kCount);
    expect_equals(std::vector<T>(grad.begin(), grad.begin() + kCount), [&](int64_t i) {
      return g[place(i)] * gate(i);
    });
    expect_equals(std::vector<T>(grad.begin() + kCount, grad.end()), [&](int64_t i) {
      return g[place(i)] * x[place(i)] * gate(i) * (1 - gate(i));
    });
  });
}

TEST_P(ElementwiseOpsTest, NormsHaveMeanZeroAndVarianceOne) {
  for_types([&]<class T>(T) {
    const auto x = draw<T>(random_, kCount), r = draw<T>(random_, kCount);
    const auto weight = draw<T>(random_, kCount);
    const auto bias = draw<T>(random_, kCount);
    std::vector<T> y(place(kCount)), normalized(place(kCount));
    T rstd = 0;
    const LayerNormForward<T> pass{
        .rows = 1,
        .channels = kCount,
        .x = x.data(),
        .residual = r.data(),
        .weight = weight.data(),
        .bias = bias.data(),
        .y = y.data(),
        .normalized = normalized.data(),
        .rstd = &rstd,
        .epsilon = 0.5,
        .drop = kDrop};
    elementwise_ops<T>(GetParam()).layer_norm(pass, 0, 1);
    const auto z = table([&](int64_t i) { return r[place(i)] + x[place(i)] * keep(i); });
    double mean = 0, variance = 0;
    for (const double v : z)
      mean += v / kCount;
    for (const double v : z)
      variance += (v - mean) * (v - mean) / kCount;
    const double slope = 1 / std::sqrt(variance + 0.5);
    EXPECT_NEAR(rstd, slope, bound<T>());
    const auto hat = [&](int64_t i) { return (z[place(i)] - mean) * slope; };
    expect_equals(normalized, hat);
    expect_equals(y, [&](int64_t i) { return hat(i) * weight[place(i)] + bias[place(i)]; });
  });
}

TEST_P(ElementwiseOpsTest, GradientsOfNormsFollowTheirFormula) {
  for_types([&]<class T>(T) {
    const auto g = draw<T>(random_, kCount), hat = draw<T>(random_, kCount);
    const auto weight = draw<T>(random_, kCount);
    std::vector<T> grad_z(place(kCount)), grad_x(place(kCount));
    std::vector<T> grad_weight(place(kCount), 1), grad_bias(place(kCount), 2);
    const T rstd = 0.75;
    const LayerNormBackward<T> pass{
        .rows = 1,
        .channels = kCount,
        .grad_y = g.data(),
        .normalized = hat.data(),
        .rstd = &rstd,
        .weight = weight.data(),
        .grad_z = grad_z.data(),
        .grad_x = grad_x.data(),
        .drop = kDrop};
    elementwise_ops<T>(GetParam())
        .layer_norm_backward(pass, 0, 1, grad_weight.data(), grad_bias.data());
    const auto weighted = table([&](int64_t i) { return double{g[place(i)]} * weight[place(i)]; });
    double mean = 0, slope = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      mean += weighted[place(i)] / kCount;
      slope += weighted[place(i)] * hat[place(i)] / kCount;
    }
    const auto want = [&](int64_t i) {
      return (weighted[place(i)] - mean - hat[place(i)] * slope) * rstd;
    };
    expect_equals(grad_z, want);
    expect_equals(grad_x, [&](int64_t i) { return want(i) * keep(i); });
    expect_equals(grad_weight, [&](int64_t i) { return 1 + double{g[place(i)]} * hat[place(i)]; });
    expect_equals(grad_bias, [&](int64_t i) { return 2.0 + g[place(i)]; });
  });
}

// What is stored in bfloat16 is computed as what is stored in float is: inputs
// that both hold exactly give the same results, rounded.
TEST_P(ElementwiseOpsTest, BFloat16IsFloatRounded) {
  using Half = BFloat16;
  const auto& ops = elementwise_ops<float>(GetParam());
  const auto& half = elementwise_ops<Half>(GetParam());
  const auto a = draw<float>(random_, 2 * kCount);
  const auto b = draw<float>(random_, 2 * kCount);
  const auto weight = draw<float>(random_, kCount);
  const auto a16 = stored<Half>(testing::wide(a));
  const auto b16 = stored<Half>(testing::wide(b));
  std::vector<float> y(place(2 * kCount));
  std::vector<Half> y16(place(2 * kCount));
  const auto expect_rounded = [&](const char* what) {
    EXPECT_LE(relative_error(y16, testing::wide(y)), bound<Half>()) << what;
  };
  const auto map = [&](auto member, auto member16, const char* what) {
    (ops.*member)(a.data(), y.data(), 0, kCount, kDrop);
    (half.*member16)(a16.data(), y16.data(), 0, kCount, kDrop);
    expect_rounded(what);
  };
  const auto pair_map = [&](auto member, auto member16, const char* what) {
    (ops.*member)(a.data(), b.data(), y.data(), 0, kCount, kDrop);
    (half.*member16)(a16.data(), b16.data(), y16.data(), 0, kCount, kDrop);
    expect_rounded(what);
  };
  using F = ElementwiseOps<float>;
  using H = ElementwiseOps<Half>;
  map(&F::dropout, &H::dropout, "dropout");
  map(&F::relu, &H::relu, "relu");
  map(&F::swish, &H::swish, "swish");
  pair_map(&F::dropout_add, &H::dropout_add, "dropout_add");
  pair_map(&F::relu_backward, &H::relu_backward, "relu_backward");
  pair_map(&F::swish_backward, &H::swish_backward, "swish_backward");
  ops.glu(a.data(), y.data(), kCount);
  half.glu(a16.data(), y16.data(), kCount);
  expect_rounded("glu");
  ops.glu_backward(a.data(), b.data(), y.data(), kCount);
  half.glu_backward(a16.data(), b16.data(), y16.data(), kCount);
  expect_rounded("glu_backward");
  const auto norm = [&]<class S>(const auto& table, const S* x, S* out) {
    LayerNormForward<S> pass{.rows = 2, .channels = kCount};
    pass.x = x;
    pass.weight = pass.bias = weight.data();
    pass.y = out;
    table.layer_norm(pass, 0, 2);
  };
  norm(ops, a.data(), y.data());
  norm(half, a16.data(), y16.data());
  expect_rounded("layer_norm");
  std::vector<float> sums[2][2];
  const auto norm_backward =
      [&]<class S>(
          const auto& table, const S* grad, const S* normalized, S* out, std::vector<float>* sum) {
        const std::vector<float> rstd = {0.5, 2};
        LayerNormBackward<S> pass{.rows = 2, .channels = kCount};
        pass.grad_y = grad;
        pass.normalized = normalized;
        pass.rstd = rstd.data();
        pass.weight = weight.data();
        pass.grad_z = out;
        for (int i = 0; i < 2; ++i)
          sum[i].assign(place(kCount), 0);
        table.layer_norm_backward(pass, 0, 2, sum[0].data(), sum[1].data());
      };
  norm_backward(ops, a.data(), b.data(), y.data(), sums[0]);
  norm_backward(half, a16.data(), b16.data(), y16.data(), sums[1]);
  expect_rounded("layer_norm_backward");
  for (int i = 0; i < 2; ++i)  // not rounded
    EXPECT_LE(relative_error(sums[1][i], testing::wide(sums[0][i])), bound<float>());
}

TEST_P(ElementwiseOpsTest, CrossEntropyFollowsItsDefinition) {
  for_types([&]<class T>(T) {
    const auto x = draw<T>(random_, kCount);
    auto logits = x;
    const int64_t target = 60;
    double loss = 0, nll = 0;
    const CrossEntropyRows<T> pass{
        .rows = 1,
        .vocabulary = kCount,
        .logits = logits.data(),
        .target = &target,
        .loss = &loss,
        .nll = &nll,
        .with_gradient = true};
    const SmoothedLoss smoothed{.nll_weight = 0.9, .uniform = 0.01};
    elementwise_ops<T>(GetParam()).cross_entropy(pass, smoothed, 0);
    double sum = 0, all = 0;
    for (const T v : x)
      sum += std::exp(double{v});
    for (const T v : x)
      all += std::log(sum) - v;
    const double want = std::log(sum) - x[place(target)];
    EXPECT_NEAR(nll, want, want * bound<T>());
    EXPECT_NEAR(loss, 0.9 * want + 0.01 * all, all * bound<T>());
    expect_equals(logits, [&](int64_t i) {
      const double p = std::exp(double{x[place(i)]}) / sum;
      return (0.9 + 0.01 * kCount) * p - 0.01 - (i == target ? 0.9 : 0);
    });
  });
}

TEST_P(ElementwiseOpsTest, OptimisersFollowTheirFormulas) {
  for_types([&]<class T>(T) {
    const ElementwiseOps<T>& ops = elementwise_ops<T>(GetParam());
    const auto p = draw<T>(random_, kCount), g = draw<T>(random_, kCount);
    const auto m = draw<T>(random_, kCount);
    auto v = draw<T>(random_, kCount);
    for (T& square : v)
      square *= square;
    auto param = p, mean = m, square = v;
    const AdamFactors<T> adam{0.5, 0.75, 0.25, 0.875, 0.125, 0.5, 0.25, 2};
    ops.adam(param.data(), g.data(), mean.data(), square.data(), kCount, adam);
    const auto new_mean = [&](int64_t i) { return 0.75 * m[place(i)] + 0.25 * 0.5 * g[place(i)]; };
    const auto new_square = [&](int64_t i) {
      const double grad = 0.5 * g[place(i)];
      return 0.875 * v[place(i)] + 0.125 * grad * grad;
    };
    expect_equals(mean, new_mean);
    expect_equals(square, new_square);
    expect_equals(param, [&](int64_t i) {
      return 0.75 * p[place(i)] - 2 * new_mean(i) / (std::sqrt(new_square(i)) + 0.5);
    });
    param = p, mean = m;
    const NagFactors<T> nag{0.75, 0.5, 0.25, 0.875, 2};
    ops.nag(param.data(), g.data(), mean.data(), kCount, nag);
    expect_equals(param, [&](int64_t i) {
      return 0.75 * p[place(i)] + 0.5 * m[place(i)] - 0.25 * g[place(i)];
    });
    expect_equals(mean, [&](int64_t i) { return 0.875 * m[place(i)] - 2.0 * g[place(i)]; });
    double sum = 0;
    for (const T x : p)
      sum += double{x} * x;
    EXPECT_NEAR(ops.squared_sum(p.data(), kCount), sum, sum * 1e-12);
  });
}

template <class S>
void expect_averages(Isa isa, std::mt19937& random) {
  constexpr int64_t kRows = 5, kFirst = 3;
  const auto x = draw<S>(random, kRows * kCount);
  std::vector<S> forward(x.size()), backward(x.size());
  std::vector<double> up(place(kCount), 0.5), down(place(kCount), 0.5);
  AverageRows<S> rows{
      .x = x.data(),
      .y = forward.data(),
      .stride = kCount,
      .rows = kRows,
      .channels = kCount,
      .position = kFirst};
  average_ops<S>(isa).forward(rows, up.data());
  rows.y = backward.data();
  average_ops<S>(isa).backward(rows, down.data());
  std::vector<double> want(x.size()), want_backward(x.size());
  for (int64_t c = 0; c < kCount; ++c) {
    double sum = 0.5, shares = 0.5;
    for (int64_t t = 0; t < kRows; ++t) {
      sum += value(x[place(t * kCount + c)]);
      want[place(t * kCount + c)] = sum / (kFirst + t + 1);
    }
    for (int64_t t = kRows - 1; t >= 0; --t) {
      shares += value(x[place(t * kCount + c)]) / (kFirst + t + 1);
      want_backward[place(t * kCount + c)] = shares;
    }
    EXPECT_NEAR(up[place(c)], sum, 1e-12);
    EXPECT_NEAR(down[place(c)], shares, 1e-12);
  }
  EXPECT_LE(relative_error(forward, want), bound<S>());
  EXPECT_LE(relative_error(backward, want_backward), bound<S>());
}

TEST_P(ElementwiseOpsTest, AveragesFollowTheirDefinition) {
  expect_averages<float>(GetParam(), random_);
  expect_averages<double>(GetParam(), random_);
  expect_averages<BFloat16>(GetParam(), random_);
}

TEST_P(ElementwiseOpsTest, RandomWordsEqualTheDefinition) {
  const uint64_t seed = 0x0123456789abcdefULL;
  // The second one carries into the upper half of the counter.
  for (const uint64_t first : {uint64_t{3}, (uint64_t{1} << 34) - 70})
    for (const int64_t count : {0, 1, 5, 31, 32, 33, 129, 515}) {
      std::vector<uint32_t> buffer(place(count + kRandomWordsSlack + 1), 42u);
      const uint32_t* const words =
          random_word_rows_of(GetParam())(seed, first, 0, 1, count, buffer.data()).words;
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(words[i], random_word(seed, first + i)) << i;
      EXPECT_EQ(buffer.back(), 42u) << "beyond the slack, count " << count;
    }
}

TEST_P(ElementwiseOpsTest, RowsOfRandomWordsEqualTheDefinition) {
  const uint64_t seed = 0xfedcba9876543210ULL;
  for (const uint64_t first : {uint64_t{0}, (uint64_t{1} << 34) - 69})
    for (const int64_t step : {0, 1, 4, 62, 496})
      for (const int64_t rows : {1, 2, 3, 4, 5, 9})
        for (const int64_t count : {1, 7, 31, 32, 63, 130}) {
          std::vector<uint32_t> buffer(place(rows * (count + kRandomWordsSlack) + 1), 42u);
          const WordRows got =
              random_word_rows_of(GetParam())(seed, first, step, rows, count, buffer.data());
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < count; ++i)
              ASSERT_EQ(got.words[r * got.stride + i], random_word(seed, first + r * step + i))
                  << "first " << first << ", step " << step << ", row " << r << " of " << rows
                  << ", word " << i << " of " << count;
          EXPECT_EQ(buffer.back(), 42u) << "beyond the slack";
        }
}

}  // namespace
}  // namespace seqconv::internal::kernels
