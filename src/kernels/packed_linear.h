#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/enum_names.h"
#include "kernels/isa.h"
#include "kernels/parallel_for.h"

/// Products of rows with weights that do not change.
namespace seqconv::internal::kernels {

/// The type that weights are stored as, and multiplied as.
enum class WeightType {
  kFloat32,
  /// Half the memory. The inputs of a product are rounded to bfloat16 too where
  /// the processor multiplies it (NarrowProducts); sums are float32.
  kBfloat16,
  /// A quarter: int8 in [-127, 127], symmetric, one scale per output channel; activations are
  /// quantized dynamically per row. Sums are exact: the same on every processor.
  kInt8
};

/// The end of a linear map, besides bias and residual.
enum class LinearEnd {
  kNone,
  kRelu,
  kSwish,  ///< z * sigmoid(z)
  kGlu     ///< a * sigmoid(b) of the halves of the outputs
};

/// Says how numbers that are narrower than float32 are multiplied.
enum class NarrowProducts {
  kWidened,  ///< as wider numbers
  kDot,      ///< by sums of products: VNNI, AVX512_BF16
  kTiles     ///< by the matrix unit: AMX
};

/// Says what multiplies: loops of an instruction set, and how narrow numbers
/// are.
struct LinearTarget {
  Isa isa = Isa::kBaseline;
  NarrowProducts narrow = NarrowProducts::kWidened;
};

/// Those that this processor has, the best one last.
std::vector<LinearTarget> linear_targets(WeightType type);
LinearTarget best_linear_target(WeightType type);

/// Weights of int8: row n is values[n] * scales[n].
struct Int8Weights {
  const int8_t* values = nullptr;  ///< [outputs, inputs], none below -127
  const float* scales = nullptr;   ///< [outputs]
};

/// Rounds a row [K] of finite numbers to int8, to nearest with ties to even,
/// its largest to 127 or -127. Returns its scale: 0 for a row of nothing but
/// numbers below 1e-30.
float quantize_row(const float* row, int64_t K, int8_t* values);

/// Inputs that int8 weights may have at most, so that no sum overflows.
inline constexpr int64_t kMostInt8Inputs = 1 << 16;

/// A weight matrix [N, K], packed for one target. Copies share it.
class PackedLinear {
 public:
  PackedLinear() = default;
  /// weight [outputs, inputs], row-major. A map that ends with kGlu needs
  /// `gated`, and no other does: it has 2N rows, of which b of output n is row
  /// N + n. With int8 there are less than kMostInt8Inputs inputs. No target:
  /// the best.
  PackedLinear(
      const float* weight,
      int64_t outputs,
      int64_t inputs,
      bool gated = false,
      WeightType type = WeightType::kFloat32,
      std::optional<LinearTarget> target = std::nullopt);
  PackedLinear(
      Int8Weights weight,
      int64_t outputs,
      int64_t inputs,
      bool gated = false,
      LinearTarget target = best_linear_target(WeightType::kInt8));

  /// The matrix of these rows alone, in this order: every one of its outputs
  /// has the bits that it has here. Not of gated weights. Error for rows that
  /// are not there. Its weights, bytes_of_rows() of them, lie in `memory` at a
  /// cache line, where some is given, and then refer to it.
  PackedLinear rows(std::span<const int32_t> rows, std::byte* memory = nullptr) const;
  int64_t bytes_of_rows(int64_t rows) const;

  int64_t outputs() const { return outputs_; }  ///< 2N when gated
  int64_t inputs() const { return inputs_; }    ///< K
  bool gated() const { return gated_; }
  WeightType type() const { return type_; }
  /// Memory of the packed weights.
  int64_t bytes() const { return bytes_; }

 private:
  friend class LinearItems;
  template <class Packed, class T>
  void pack(const T* weight);

  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  bool gated_ = false;
  WeightType type_ = WeightType::kFloat32;
  LinearTarget target_;
  int64_t bytes_ = 0;
  // Memory that never changes, so that copies share it.
  std::shared_ptr<std::byte> panels_;
  std::shared_ptr<const struct OutputScales> scales_;  ///< of int8 alone
};

/// y = residual + end(x W^T + bias) over rows. Nothing overlaps, but that y may
/// be the residual.
struct LinearPass {
  int64_t rows = 0;
  const float* x = nullptr;         ///< [rows, K]
  const float* bias = nullptr;      ///< [outputs] or null
  const float* residual = nullptr;  ///< [rows, N] or null
  LinearEnd end = LinearEnd::kNone;
  float* y = nullptr;    ///< [rows, N]
  int64_t y_stride = 0;  ///< elements from one row of y to the next; 0: N
};

/// Every output is one sum over k in ascending order: it depends on its row and
/// its weights alone, never on the number of rows or threads. A row of int8
/// that is not finite gives NaN.
void packed_linear(const PackedLinear&, const LinearPass&, const ParallelFor&);

}  // namespace seqconv::internal::kernels

/// The names of the types in options and config.json.
template <>
struct seqconv::internal::EnumNames<seqconv::internal::kernels::WeightType> {
  using WeightType = seqconv::internal::kernels::WeightType;
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, WeightType>>(
      {{"float32", WeightType::kFloat32},
       {"bfloat16", WeightType::kBfloat16},
       {"int8", WeightType::kInt8}});
};
