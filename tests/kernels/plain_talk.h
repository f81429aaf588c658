#pragma once

#include "kernels/kernel_support.h"
#include "kernels/talk.h"

/// TaLK by its definition, sums over windows, in loops of doubles.
namespace seqconv::internal::kernels::testing {

struct PlainTalkCase {
  TalkShape shape;
  std::vector<int64_t> lengths;
  double max = 1;  ///< of the offsets
  double min = 0;
  int64_t streams_from = Execution{}.streams_from;

  int64_t valid(int64_t b) const { return lengths.empty() ? shape.steps : lengths[place(b)]; }
};

/// The weight of position s in the window of t, and its derivatives.
struct PlainTalk {
  PlainTalkCase c;
  std::vector<double> x, left, right, grad_y;
  std::vector<double> y, grad_x, grad_left, grad_right;

  void run() {
    y.assign(x.size(), 0);
    grad_x.assign(x.size(), 0);
    grad_left.assign(left.size(), 0);
    grad_right.assign(left.size(), 0);
    for (int64_t b = 0; b < c.shape.batch; ++b)
      for (int64_t t = 0; t < c.valid(b); ++t)
        for (int64_t h = 0; h < c.shape.heads; ++h)
          position(b, t, h);
  }

  void position(int64_t b, int64_t t, int64_t h) {
    const TalkShape& s = c.shape;
    const int64_t R = s.head_channels(), last = c.valid(b) - 1;
    const size_t o = place((b * s.steps + t) * s.heads + h);
    const auto clamp = [&](double p) {
      return std::min(std::max(p, 0.0), static_cast<double>(last));
    };
    const double from = clamp(double(t) - left[o] * double(s.max_left));
    const double to = clamp(double(t) + (right.empty() ? 0 : right[o] * double(s.max_right)));
    const double scale = 1.0 / double(s.window());
    const auto row = [&](double p) {
      const auto n = b * s.steps + static_cast<int64_t>(p);
      return place(n * s.channels + h * R);
    };
    const size_t at = row(double(t));
    // Pointers: checked elements of vectors take far longer.
    const double* const g = &grad_y[at];
    double* const out = &y[at];
    const auto add = [&](double p, double weight) {
      const size_t in = row(p);
      const double* const from_x = &x[in];
      double* const grad_in = &grad_x[in];
      const double scaled = weight * scale;
      for (int64_t i = 0; i < R; ++i) {
        out[i] += scaled * from_x[i];
        grad_in[i] += scaled * g[i];
      }
    };
    const auto product = [&](double p) {
      const double* const from_x = &x[row(p)];
      double sum = 0;
      for (int64_t i = 0; i < R; ++i)
        sum += g[i] * from_x[i];
      return scale * sum;
    };
    for (double p = std::ceil(from); p <= std::floor(to); ++p)
      add(p, 1);
    for (double p = std::floor(to) + 1; p < std::ceil(from); ++p)
      add(p, -1);
    if (from != std::floor(from)) {
      add(std::floor(from), std::ceil(from) - from);
      grad_left[o] = double(s.max_left) * product(std::floor(from));
    }
    if (to != std::floor(to)) {
      add(std::ceil(to), to - std::floor(to));
      grad_right[o] = double(s.max_right) * product(std::ceil(to));
    }
  }
};

}  // namespace seqconv::internal::kernels::testing
