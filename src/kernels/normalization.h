#pragma once

#include <cmath>
#include <cstdint>

#include "seqconv/base/error.h"
#include "seqconv/kernels/conv.h"

/// The normalisations of a kernel other than softmax, row by row.
namespace seqconv::kernels {

template <class A>
A row_norm(Normalization normalization, const A* w, int64_t count) {
  const bool squared = normalization == Normalization::kL2 ||
      normalization == Normalization::kAbsL2;
  A sum = 0;
  for (int64_t j = 0; j < count; ++j)
    sum += squared ? w[j] * w[j] : std::abs(w[j]);
  return squared ? std::sqrt(sum) : sum;
}

/// Turns a row of raw weights into taps, in place.
template <class A>
void normalize_row(Normalization normalization, A* w, int64_t count) {
  const auto each = [&](const auto& f) {
    for (int64_t j = 0; j < count; ++j)
      w[j] = f(w[j]);
  };
  const auto scale = [&] {
    return A(1) /
        (row_norm(normalization, w, count) + static_cast<A>(kNormEpsilon));
  };
  switch (normalization) {
    case Normalization::kNone:
      return;
    case Normalization::kSigmoid:
      return each([](A v) { return A(1) / (A(1) + std::exp(-v)); });
    case Normalization::kTanh:
      return each([](A v) { return std::tanh(v); });
    case Normalization::kSquare:
      return each([](A v) { return v * v; });
    case Normalization::kAbs:
      return each([](A v) { return std::abs(v); });
    case Normalization::kL1:
    case Normalization::kL2:
      return each([s = scale()](A v) { return v * s; });
    case Normalization::kAbsL1:
    case Normalization::kAbsL2:
      return each([s = scale()](A v) { return std::abs(v) * s; });
    case Normalization::kSoftmax:
      break;
  }
  fail("softmax is a tile operation");
}

/// -1, 0 or 1: the derivative of |v|, 0 where there is none.
template <class A>
A sign(A v) {
  return static_cast<A>((v > 0) - (v < 0));
}

/// Gradient with respect to taps -> with respect to the raw weights, in place.
template <class A>
void normalize_row_backward(
    Normalization normalization,
    const A* raw,
    A* grad,
    int64_t count) {
  const auto each = [&](const auto& f) {
    for (int64_t j = 0; j < count; ++j)
      grad[j] = f(raw[j], grad[j]);
  };
  // y = u / (|w| + e), u = w or |w|: the norm's own gradient is subtracted.
  const auto scaled = [&](bool absolute, bool squared) {
    const A norm = row_norm(normalization, raw, count);
    const A scale = A(1) / (norm + static_cast<A>(kNormEpsilon));
    A dot = 0;
    for (int64_t j = 0; j < count; ++j)
      dot += grad[j] * (absolute ? std::abs(raw[j]) : raw[j]);
    const A shift = dot * scale * scale;
    each([=](A w, A g) {
      const A slope = squared ? (norm > 0 ? w / norm : A(0)) : sign(w);
      return (absolute ? sign(w) : A(1)) * g * scale - slope * shift;
    });
  };
  switch (normalization) {
    case Normalization::kNone:
      return;
    case Normalization::kSigmoid:
      return each([](A w, A g) {
        const A y = A(1) / (A(1) + std::exp(-w));
        return g * y * (A(1) - y);
      });
    case Normalization::kTanh:
      return each([](A w, A g) {
        const A y = std::tanh(w);
        return g * (A(1) - y * y);
      });
    case Normalization::kSquare:
      return each([](A w, A g) { return g * A(2) * w; });
    case Normalization::kAbs:
      return each([](A w, A g) { return g * sign(w); });
    case Normalization::kL1:
      return scaled(/*absolute=*/false, /*squared=*/false);
    case Normalization::kL2:
      return scaled(/*absolute=*/false, /*squared=*/true);
    case Normalization::kAbsL1:
      return scaled(/*absolute=*/true, /*squared=*/false);
    case Normalization::kAbsL2:
      return scaled(/*absolute=*/true, /*squared=*/true);
    case Normalization::kSoftmax:
      break;
  }
  fail("softmax is a tile operation");
}

}  // namespace seqconv::kernels
