#include <cmath>

#include "seqconv/kernels/packed_linear.h"

namespace seqconv::kernels {
namespace {

float sigmoid(float z) {
  return 1.0F / (1.0F + std::exp(-z));
}

}  // namespace

PackedLinear::PackedLinear(
    const float* weight,
    int64_t outputs,
    int64_t inputs,
    bool gated,
    Isa isa)
    : outputs_(outputs),
      inputs_(inputs),
      gated_(gated),
      isa_(isa),
      data_(weight, weight + outputs * inputs) {}

void packed_linear(
    const PackedLinear& weight,
    const LinearPass& pass,
    const ParallelFor& parallel_for) {
  const int64_t K = weight.inputs_;
  const int64_t N = weight.gated_ ? weight.outputs_ / 2 : weight.outputs_;
  const int64_t stride = pass.y_stride > 0 ? pass.y_stride : N;
  const auto dot = [&](int64_t row, int64_t n) {
    float sum = 0;
    for (int64_t k = 0; k < K; ++k)
      sum += pass.x[row * K + k] * weight.data_[static_cast<size_t>(n * K + k)];
    return pass.bias != nullptr ? sum + pass.bias[n] : sum;
  };
  parallel_for(pass.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t n = 0; n < N; ++n) {
        float z = dot(row, n);
        switch (pass.end) {
          case LinearEnd::kNone:
            break;
          case LinearEnd::kRelu:
            z = z > 0 ? z : 0;
            break;
          case LinearEnd::kSwish:
            z = z * sigmoid(z);
            break;
          case LinearEnd::kGlu:
            z = z * sigmoid(dot(row, N + n));
            break;
        }
        if (pass.residual != nullptr)
          z += pass.residual[row * N + n];
        pass.y[row * stride + n] = z;
      }
  });
}

}  // namespace seqconv::kernels
