#include "kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "kernels/common/chunks.h"
#include "kernels/fused/elementwise_ops.h"

namespace seqconv::internal::kernels {
template <class T>
void adam_step(
    T* p,
    const T* g,
    T* m,
    T* v,
    int64_t count,
    const AdamOptions& o,
    const ParallelFor& parallel_for) {
  SEQCONV_CHECK(o.step >= 1, "adam_step: step must be >= 1, but got ", o.step);
  const double n = static_cast<double>(o.step);
  const double rate = o.lr * std::sqrt(1 - std::pow(o.beta2, n)) / (1 - std::pow(o.beta1, n));
  const AdamFactors<T> factors{
      static_cast<T>(o.grad_scale),
      static_cast<T>(o.beta1),
      static_cast<T>(1 - o.beta1),
      static_cast<T>(o.beta2),
      static_cast<T>(1 - o.beta2),
      static_cast<T>(o.epsilon),
      static_cast<T>(o.lr * o.weight_decay),
      static_cast<T>(rate)};
  const auto step = elementwise_ops<T>(best_isa()).adam;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    step(p + begin, g + begin, m + begin, v + begin, end - begin, factors);
  });
}

template <class T>
void nag_step(
    T* p, const T* g, T* buf, int64_t count, const NagOptions& o, const ParallelFor& parallel_for) {
  const double correction = o.previous_lr > 0 ? o.lr / o.previous_lr : 1.0;
  const double carry = o.momentum * correction;
  const NagFactors<T> factors{
      static_cast<T>(1 - o.lr * o.weight_decay),
      static_cast<T>(o.momentum * carry),
      static_cast<T>((1 + o.momentum) * o.lr * o.grad_scale),
      static_cast<T>(carry),
      static_cast<T>(o.lr * o.grad_scale)};
  const auto step = elementwise_ops<T>(best_isa()).nag;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    step(p + begin, g + begin, buf + begin, end - begin, factors);
  });
}

template <class T>
double squared_norm(const T* x, int64_t count, const ParallelFor& parallel_for) {
  // Parts do not depend on the number of threads.
  constexpr int64_t kPart = 1 << 14;
  const auto squared_sum = elementwise_ops<T>(best_isa()).squared_sum;
  std::vector<double> sums(static_cast<size_t>((count + kPart - 1) / kPart));
  const auto parts = static_cast<int64_t>(sums.size());
  parallel_for(parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * kPart;
      sums[part] = squared_sum(x + first, std::min(kPart, count - first));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

SEQCONV_INSTANTIATE(adam_step);
SEQCONV_INSTANTIATE(nag_step);
SEQCONV_INSTANTIATE(squared_norm);

}  // namespace seqconv::internal::kernels
