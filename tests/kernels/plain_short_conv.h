#pragma once

#include <optional>

#include "kernels/conv.h"
#include "kernels/kernel_support.h"

/// A convolution with all that short_conv has, said in loops of doubles: groups and
/// heads, inputs before (of causal ones), a dilation, an activation and a residual.
namespace seqconv::internal::kernels::testing {

struct PlainShortConv {
  ConvShape shape;       ///< steps: of a sequence, or of all packed rows
  int64_t groups = 0;    ///< of static taps; 0: none
  bool dynamic = false;  ///< taps of every position, for shape.heads
  bool bias = false, past = false;
  ConvEnd end;
  std::vector<int64_t> lengths, offsets;

  std::vector<double> x, static_taps, dynamic_taps, bias_values, before, grad_y;
  std::vector<double> y, grad_x, grad_static, grad_dynamic, grad_bias, grad_before;

  int64_t rows() const { return offsets.empty() ? shape.batch * shape.steps : shape.steps; }
  int64_t reach() const { return (shape.kernel_size - 1) * shape.dilation; }
  int64_t first(int64_t b) const { return offsets.empty() ? b * shape.steps : offsets[place(b)]; }
  int64_t real(int64_t b) const {
    if (!lengths.empty())
      return lengths[place(b)];
    return offsets.empty() ? shape.steps : offsets[place(b + 1)] - offsets[place(b)];
  }

  void draw(std::mt19937& random) {
    const int64_t C = shape.channels, K = shape.kernel_size;
    const auto some = [&](bool there, int64_t count) {
      return testing::draw<double>(random, there ? count : 0);
    };
    x = some(true, rows() * C);
    grad_y = some(true, rows() * C);
    static_taps = some(groups > 0, groups * K);
    dynamic_taps = some(dynamic, rows() * shape.heads * K);
    bias_values = some(bias, C);
    before = some(past, shape.batch * reach() * C);
  }

  void run() {
    y.assign(x.size(), 0);
    grad_x.assign(x.size(), 0);
    grad_static.assign(static_taps.size(), 0);
    grad_dynamic.assign(dynamic_taps.size(), 0);
    grad_bias.assign(bias_values.size(), 0);
    grad_before.assign(before.size(), 0);
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t t = 0; t < real(b); ++t)
        for (int64_t c = 0; c < shape.channels; ++c)
          output(b, t, c);
  }

 private:
  /// The place of an input, and that of its gradient; null: outside.
  struct Input {
    const double* value = nullptr;
    double* gradient = nullptr;
  };
  Input input(int64_t b, int64_t t, int64_t c) {
    if (t >= real(b))
      return {};
    if (t >= 0) {
      const size_t at = place((first(b) + t) * shape.channels + c);
      return {&x[at], &grad_x[at]};
    }
    if (before.empty() || t < -reach())
      return {};
    const size_t at = place((b * reach() + reach() + t) * shape.channels + c);
    return {&before[at], &grad_before[at]};
  }

  void output(int64_t b, int64_t t, int64_t c) {
    const int64_t K = shape.kernel_size, C = shape.channels, row = first(b) + t;
    const auto number = [&](int64_t group, int64_t j) { return place(group * K + j); };
    const int64_t g = groups > 0 ? c / (C / groups) : 0;
    const int64_t h = row * shape.heads + c / (C / shape.heads);
    const auto tap = [&](int64_t j) {
      return (groups > 0 ? static_taps[number(g, j)] : 0) +
          (dynamic ? dynamic_taps[number(h, j)] : 0);
    };
    double z = bias ? bias_values[place(c)] : 0;
    for (int64_t j = 0; j < K; ++j)
      if (const Input in = input(b, t - (shape.padding_left - j) * shape.dilation, c);
          in.value != nullptr)
        z += tap(j) * *in.value;
    const size_t at = place(row * C + c);
    const double s = 1 / (1 + std::exp(-z));
    const bool silu = end.activation == ConvActivation::kSilu;
    y[at] = (silu ? z * s : z) + (end.residual ? x[at] : 0);
    const double grad = grad_y[at] * (silu ? s * (1 + z * (1 - s)) : 1);
    if (end.residual)
      grad_x[at] += grad_y[at];
    if (bias)
      grad_bias[place(c)] += grad;
    for (int64_t j = 0; j < K; ++j) {
      const Input in = input(b, t - (shape.padding_left - j) * shape.dilation, c);
      if (in.value == nullptr)
        continue;
      *in.gradient += tap(j) * grad;
      if (groups > 0)
        grad_static[number(g, j)] += grad * *in.value;
      if (dynamic)
        grad_dynamic[number(h, j)] += grad * *in.value;
    }
  }
};

}  // namespace seqconv::internal::kernels::testing
