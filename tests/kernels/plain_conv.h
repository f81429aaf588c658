#pragma once

#include <limits>

#include "base/random.h"
#include "kernels/conv.h"
#include "kernels/kernel_support.h"

/// lightconv and dynamicconv said in loops of doubles.
namespace seqconv::internal::kernels::testing {

struct PlainConvCase {
  ConvShape shape;
  bool softmax = true;  ///< else logits are the taps
  double extreme = 0;   ///< some logits are this instead, if it is not 0
  bool dynamic = false;
  bool renormalize_edges = false;
  TapDrop drop;
  std::vector<int64_t> lengths;
  int64_t streams_from = Execution{}.streams_from;

  int64_t valid(int64_t b) const { return lengths.empty() ? shape.steps : lengths[place(b)]; }
  int64_t logit_count() const {
    return (dynamic ? shape.batch * shape.steps : 1) * shape.heads * shape.kernel_size;
  }
  /// The number of the first logit of a position and head.
  int64_t first_logit(int64_t b, int64_t t, int64_t h) const {
    const int64_t at = dynamic ? b * shape.steps + t : 0;
    return (at * shape.heads + h) * shape.kernel_size;
  }
};

/// Forward and backward pass of one position and head.
struct PlainConv {
  PlainConvCase c;
  std::vector<double> x, logits, grad_y;
  std::vector<double> y, grad_x, grad_logits;

  int64_t K() const { return c.shape.kernel_size; }

  double keep(int64_t i) const {
    if (!c.drop.seeded)
      return 1;
    return random_word(c.drop.seed, static_cast<uint64_t>(i)) >= drop_threshold(c.drop.p)
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
    const std::vector<double> w = taps(first, inside);
    const auto row = [&](int64_t of) { return place((b * s.steps + of) * s.channels + h * R); };
    // Pointers: checked elements of vectors take far longer.
    const size_t at = row(t);
    const double* const g = &grad_y[at];
    double* const out = &y[at];
    for (int64_t j = 0; j < K; ++j) {
      if (!inside(j))
        continue;
      const size_t from = row(t - s.padding_left + j);
      const double* const in = &x[from];
      double* const grad_in = &grad_x[from];
      const double kept = keep(first + j), tap = w[place(j)] * kept;
      double product = 0;
      for (int64_t i = 0; i < R; ++i) {
        out[i] += tap * in[i];
        grad_in[i] += tap * g[i];
        product += g[i] * in[i];
      }
      grad[place(j)] = kept * product;
    }
    add_logit_gradients(first, w, grad);
  }

  /// A softmax is over the taps that are inside, if it is over these alone.
  template <class Inside>
  std::vector<double> taps(int64_t first, const Inside& inside) const {
    std::vector<double> w(logits.begin() + first, logits.begin() + first + K());
    if (!c.softmax)
      return w;
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

  void add_logit_gradients(
      int64_t first, const std::vector<double>& w, const std::vector<double>& grad) {
    double mean = 0;
    for (size_t j = 0; j < w.size(); ++j)
      mean += w[j] * grad[j];
    for (size_t j = 0; j < w.size(); ++j)
      grad_logits[place(first) + j] += c.softmax ? w[j] * (grad[j] - mean) : grad[j];
  }
};

}  // namespace seqconv::internal::kernels::testing
