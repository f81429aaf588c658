#pragma once

#include <utility>

#include "base/enum_names.h"
#include "seqconv/ops/conv_options.h"

namespace seqconv::ops {

/// Says where label smoothing puts its mass (semantics.md 3.1 and 8.5).
enum class SmoothingForm {
  kAll,     ///< (1-e) nll + e/V * sum over all words (the paper; default)
  kOthers,  ///< (1-e-e') nll + e' * sum over all words, e' = e/(V-1)
};

struct CrossEntropyOptions {
  double smoothing = 0;
  SmoothingForm form = SmoothingForm::kAll;
  int64_t ignore_index = 1;  ///< targets with this id count nothing
  int64_t chunk_rows = 0;    ///< rows of logits alive at a time; 0: chosen
  /// [] float32 on the device of `hidden`, or undefined: 1. The loss stays as
  /// it is, and all gradients are so many times as large: those of float16
  /// would become 0 otherwise.
  at::Tensor gradient_scale;
};

/// Sums over rows: {label-smoothed loss, negative log-likelihood}, natural log,
/// float32 scalars (float64 of float64), on the device of `hidden`.
struct CrossEntropySums {
  at::Tensor loss;  ///< differentiable in hidden and weight
  at::Tensor nll;   ///< no gradient
};

/// Label-smoothed cross-entropy of softmax(hidden @ weight^T), computed in
/// chunks of rows: the [M, V] logits never exist as a whole, and the gradients
/// are made in the same pass while a chunk is in the cache.
/// hidden [M, C], weight [V, C] of the same type, or float32 beside 16 bits
/// (its gradient is float32 too), target [M] int64 on the host, where rows that
/// count nothing are left out.
CrossEntropySums linear_cross_entropy(
    const at::Tensor& hidden,
    const at::Tensor& weight,
    const at::Tensor& target,
    const CrossEntropyOptions& options);

/// Rows of [rows, V] log-probabilities that evaluation keeps alive at a time:
/// at most 64 MiB of float32, and at most 256.
constexpr int64_t rows_in_chunk(int64_t vocabulary) {
  constexpr int64_t kMax = 256;
  const int64_t fitting = (int64_t{16} << 20) / (vocabulary + 1);
  return fitting < 1 ? 1 : fitting < kMax ? fitting : kMax;
}

/// The same from logits [M, V] in plain tensor algebra, kept for ever.
CrossEntropySums cross_entropy_reference(
    const at::Tensor& logits, const at::Tensor& target, const CrossEntropyOptions& options);

}  // namespace seqconv::ops

template <>
struct seqconv::internal::EnumNames<seqconv::ops::SmoothingForm> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::ops::SmoothingForm>>(
          {{"all", seqconv::ops::SmoothingForm::kAll},
           {"others", seqconv::ops::SmoothingForm::kOthers}});
};
