#pragma once

#include <optional>
#include <ostream>

#include "kernels/conv.h"
#include "kernels/cuda/conv/run.h"
#include "kernels/cuda_support.h"
#include "kernels/parallel.h"
#include "support/rounds.h"

/// A convolution by the device's kernels on the host, and by the CPU's in
/// float64.
namespace seqconv::internal::kernels::cuda::testing {

struct ConvCase {
  LogitsOf kind = LogitsOf::kPosition;
  int64_t B = 2, T = 5, H = 2, R = 4, K = 3, padding_left = 2;
  bool softmax = true;  ///< else logits are the taps
  bool renormalize = false;
  double p = 0;
  std::optional<int64_t> seed;
  bool masked = false;
  bool bias = true;
  std::vector<int64_t> lengths;
  bool wide_logits = false;  ///< float beside 16-bit x
  /// Logits at minus infinity: some of every row, in patterns.
  bool infinities = false;
  Device device;
  bool wants_x = true, wants_logits = true, wants_bias = true;  ///< gradients

  int64_t C() const { return H * R; }
  int64_t logit_count() const { return (kind == LogitsOf::kHead ? 1 : B * T) * H * K; }
  ConvShape shape() const {
    return {
        .batch = B,
        .steps = T,
        .channels = C(),
        .heads = H,
        .kernel_size = K,
        .padding_left = padding_left};
  }
};

inline std::ostream& operator<<(std::ostream& out, const ConvCase& c) {
  return out << (c.kind == LogitsOf::kHead ? "lightconv" : "dynamicconv") << " B " << c.B << " T "
             << c.T << " H " << c.H << " R " << c.R << " K " << c.K << " P " << c.padding_left
             << " softmax " << c.softmax << (c.renormalize ? " renormalized" : "")
             << (c.seed ? " seed" : "") << (c.masked ? " mask" : "")
             << (c.lengths.empty() ? "" : " lengths") << (c.wide_logits ? " wide" : "")
             << (c.infinities ? " infinities" : "") << " of " << c.device.shared;
}

/// Values of a case, in float64.
struct ConvValues {
  std::vector<double> x, logits, bias, grad_y;
  std::vector<uint8_t> mask;

  explicit ConvValues(const ConvCase& c) {
    Numbers numbers(static_cast<unsigned>(c.T * 131 + c.K * 7 + c.R));
    x = numbers.normal(c.B * c.T * c.C());
    logits = numbers.normal(c.logit_count());
    bias = numbers.normal(c.C());
    grad_y = numbers.normal(c.B * c.T * c.C());
    mask = numbers.bits(c.logit_count(), c.p);
    for (int64_t i = 0; c.infinities && i < c.logit_count(); ++i)
      if (is_hidden(c, i / c.K, static_cast<int>(i % c.K)))
        logits[static_cast<size_t>(i)] = -HUGE_VAL;
  }

  /// Whether tap j of row n is at minus infinity; never that of the position
  /// itself.
  static bool is_hidden(const ConvCase& c, int64_t n, int j) {
    const bool hidden[] = {
        j % 4 == n / 6 % 4, j % 4 != n / 6 % 4, j == 0, j >= c.K / 2, j < c.K / 2, true};
    return hidden[n % 6] && j != c.padding_left;
  }
};

template <class S>
struct ConvResult {
  std::vector<S> y, grad_x;
  std::vector<double> grad_logits;
  std::vector<S> grad_logits_stored;
  std::vector<float> grad_logits_wide;
  std::vector<float> grad_bias;
};

/// The setup of a case; seed and mask must outlive it.
inline ConvSetup setup_of(const ConvCase& c, const ConvValues& values, const int64_t& seed) {
  ConvSetup setup;
  setup.shape = c.shape();
  setup.logits_of = c.kind;
  setup.softmax = c.softmax;
  setup.renormalize_edges = c.renormalize;
  setup.drop.p = c.p;
  setup.drop.seed = c.seed ? &seed : nullptr;
  setup.drop.mask = c.masked ? values.mask.data() : nullptr;
  setup.lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  return setup;
}

template <class S>
ConvResult<S> run_on_host(const ConvCase& c, const ConvValues& values, bool backwards) {
  HostLauncher launcher(backwards, c.device);
  const auto x = narrowed<S>(values.x), grad_y = narrowed<S>(values.grad_y);
  const auto logits = narrowed<S>(values.logits);
  const auto wide = narrowed<float>(values.logits);
  const auto bias = narrowed<float>(values.bias);
  const int64_t seed = c.seed.value_or(0);
  ConvSetup setup = setup_of(c, values, seed);
  if (c.wide_logits)
    setup.logits = {wide.data(), Storage::kFloat};
  else
    setup.logits = {logits.data(), StorageOf<S>::kValue};
  ConvResult<S> result;
  result.y = garbage<S>(c.B * c.T * c.C());
  result.grad_x = result.y;
  result.grad_logits_stored = garbage<S>(c.logit_count());
  result.grad_logits_wide = garbage<float>(c.logit_count());
  result.grad_bias = garbage<float>(c.C());
  run(launcher,
      ConvForward<S>{
          .setup = setup,
          .x = x.data(),
          .bias = c.bias ? bias.data() : nullptr,
          .y = result.y.data()});
  ConvBackward<S> backward = {
      .setup = setup,
      .x = x.data(),
      .grad_y = grad_y.data(),
      .grad_x = c.wants_x ? result.grad_x.data() : nullptr,
      .grad_logits = !c.wants_logits ? nullptr
          : c.wide_logits            ? static_cast<void*>(result.grad_logits_wide.data())
                                     : result.grad_logits_stored.data(),
      .grad_bias = c.wants_bias ? result.grad_bias.data() : nullptr};
  auto workspace = garbage<float>(backward_workspace(backward, c.device));
  backward.workspace = workspace.data();
  run(launcher, backward);
  result.grad_logits =
      c.wide_logits ? widened(result.grad_logits_wide) : widened(result.grad_logits_stored);
  return result;
}

/// The case as a dynamicconv whose logits are written out for every position,
/// with those outside the sequence at minus infinity where edges are
/// renormalised.
struct WrittenOut {
  std::vector<double> logits;
  std::vector<uint8_t> mask;

  WrittenOut(const ConvCase& c, const ConvValues& values) {
    const int64_t row = c.H * c.K;
    for (int64_t b = 0; b < c.B; ++b)
      for (int64_t t = 0; t < c.T; ++t)
        for (int64_t i = 0; i < row; ++i) {
          const int64_t from = c.kind == LogitsOf::kHead ? i : (b * c.T + t) * row + i;
          const int64_t s = t - c.padding_left + i % c.K;
          const bool out = s < 0 || s >= length(c, b);
          logits.push_back(
              c.renormalize && out ? -1e300 : values.logits[static_cast<size_t>(from)]);
          mask.push_back(kept(c, values, from));
        }
  }

  static int64_t length(const ConvCase& c, int64_t b) {
    return c.lengths.empty() ? c.T : c.lengths[static_cast<size_t>(b)];
  }

 private:
  static uint8_t kept(const ConvCase& c, const ConvValues& values, int64_t i) {
    if (c.masked)
      return values.mask[static_cast<size_t>(i)];
    if (c.seed && c.p > 0)
      return random_word(static_cast<uint64_t>(*c.seed), static_cast<uint64_t>(i)) >=
          drop_threshold(c.p);
    return 1;
  }
};

/// The CPU's kernels in float64.
struct ConvReference {
  std::vector<double> y, grad_x, grad_logits, grad_bias;

  ConvReference(const ConvCase& c, const ConvValues& values)
      : y(values.x.size()),
        grad_x(values.x.size()),
        grad_logits(static_cast<size_t>(c.logit_count())),
        grad_bias(static_cast<size_t>(c.C())) {
    const WrittenOut written(c, values);
    const Execution run = {kernels::testing::serial};
    const kernels::TapDrop drop = {
        .p = c.p, .mask = c.masked || c.seed ? written.mask.data() : nullptr};
    const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
    std::vector<double> grads(written.logits.size());
    kernels::dynamicconv_forward<double, double>(
        {.shape = c.shape(),
         .softmax = c.softmax,
         .drop = drop,
         .x = values.x.data(),
         .logits = written.logits.data(),
         .bias = c.bias ? values.bias.data() : nullptr,
         .lengths = lengths,
         .y = y.data()},
        run);
    kernels::dynamicconv_backward<double, double>(
        {.shape = c.shape(),
         .softmax = c.softmax,
         .drop = drop,
         .x = values.x.data(),
         .logits = written.logits.data(),
         .lengths = lengths,
         .grad_y = values.grad_y.data(),
         .grad_x = grad_x.data(),
         .grad_logits = grads.data()},
        run);
    kernels::bias_gradient<double>(
        c.shape(), lengths, nullptr, values.grad_y.data(), grad_bias.data(), run);
    for (size_t i = 0; i < grads.size(); ++i)
      grad_logits[i % grad_logits.size()] += grads[i];
  }
};

/// How far S is from `want`, and the bits of a run in another order.
template <class S>
void expect_result(const ConvCase& c, const ConvValues& values, const ConvReference& want) {
  SCOPED_TRACE(::testing::Message() << c << " storage " << static_cast<int>(StorageOf<S>::kValue));
  const auto got = run_on_host<S>(c, values, /*backwards=*/false);
  const double tolerance = bound<S>();
  EXPECT_LE(error_of(got.y, want.y), tolerance) << "y";
  EXPECT_LE(error_of(got.grad_x, want.grad_x), tolerance) << "grad_x";
  EXPECT_LE(error_of(got.grad_logits, want.grad_logits), tolerance) << "grad_logits";
  EXPECT_LE(error_of(got.grad_bias, want.grad_bias), 1e-5) << "grad_bias";
  const auto again = run_on_host<S>(c, values, /*backwards=*/true);
  EXPECT_TRUE(same_bits(got.y, again.y)) << "y in another order";
  EXPECT_TRUE(same_bits(got.grad_x, again.grad_x)) << "grad_x";
  EXPECT_TRUE(same_bits(got.grad_logits, again.grad_logits));
  EXPECT_TRUE(same_bits(got.grad_bias, again.grad_bias));
}

/// The same for several types, which share a reference.
template <class... S>
void expect_reference(const ConvCase& c, const ConvValues& values) {
  const ConvReference want(c, values);
  (expect_result<S>(c, values, want), ...);
}
template <class... S>
void expect_reference(const ConvCase& c) {
  expect_reference<S...>(c, ConvValues(c));
}

inline void expect_in_all_types(const ConvCase& c) {
  const ConvValues values(c);
  const ConvReference want(c, values);
  seqconv::internal::testing::in_turn(
      c.T + c.K / 2 + c.renormalize,
      [&] { expect_result<float>(c, values, want); },
      [&] { expect_result<BFloat16>(c, values, want); },
      [&] { expect_result<Float16>(c, values, want); });
}
/// One of the two types of 16 bits, which have their kernels in common.
inline void expect_in_16_bits(const ConvCase& c, bool brain) {
  brain ? expect_reference<BFloat16>(c) : expect_reference<Float16>(c);
}

}  // namespace seqconv::internal::kernels::cuda::testing
