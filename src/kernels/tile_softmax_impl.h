#pragma once

#include "kernels/simd.h"

namespace seqconv::kernels::SEQCONV_ISA {

/// e^x for x <= 0 (more is never asked), about 1 unit in the last place.
/// Below -87.3 the result is 0; NaN stays NaN.
inline Vec<float> exp_of_negative(Vec<float> x) {
  using Int = Simd<float>::Int;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: rounds to an integer
  const Vec<float> safe = x < -88.0f ? Vec<float>{} - 88.0f : x;
  const Vec<float> shifted = safe * 1.44269504088896341f + kMagic;
  const Vec<float> n = shifted - kMagic;
  Vec<float> r = safe - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // The integer n stands in the low bits of `shifted`; make 2^n of it.
  const Int power = (reinterpret_cast<Int>(shifted) - 0x4B400000 + 127) << 23;
  return x < -87.3f ? Vec<float>{} : p * reinterpret_cast<Vec<float>>(power);
}

inline Vec<double> exp_of_negative(Vec<double> x) {
  for (int i = 0; i < kLanes<double>; ++i)
    x[i] = __builtin_exp(x[i]);
  return x;
}

template <class A>
void softmax(A* rows, int64_t pitch, int64_t count, int64_t kernel_size) {
  constexpr int L = kLanes<A>;
  for (int64_t t = 0; t < count; ++t) {
    A* const w = rows + t * pitch;
    for (int64_t j = kernel_size; j < pitch; ++j)
      w[j] = -static_cast<A>(__builtin_inf());
    Vec<A> most = load<A>(w);
    for (int64_t j = L; j < pitch; j += L) {
      const Vec<A> v = load<A>(w + j);
      most = v > most ? v : most;
    }
    A top = most[0];
    for (int i = 1; i < L; ++i)
      top = most[i] > top ? most[i] : top;
    Vec<A> total = {};
    for (int64_t j = 0; j < pitch; j += L) {
      const Vec<A> e = exp_of_negative(load<A>(w + j) - top);
      store<A>(w + j, e);
      total += e;
    }
    const A scale = A(1) / lane_sum<A>(total);
    for (int64_t j = 0; j < pitch; j += L)
      store<A>(w + j, load<A>(w + j) * scale);
  }
}

template <class A>
void softmax_backward(const A* w, A* grad, int64_t pitch, int64_t count) {
  constexpr int L = kLanes<A>;
  for (int64_t t = 0; t < count; ++t, w += pitch, grad += pitch) {
    Vec<A> dot = {};
    for (int64_t j = 0; j < pitch; j += L)
      dot += load<A>(w + j) * load<A>(grad + j);
    const A mean = lane_sum<A>(dot);
    for (int64_t j = 0; j < pitch; j += L)
      store<A>(grad + j, load<A>(w + j) * (load<A>(grad + j) - mean));
  }
}

template <class A>
void multiply(A* a, const A* b, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    a[i] *= b[i];
}

}  // namespace seqconv::kernels::SEQCONV_ISA
