#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "seqconv/base/enum_names.h"

namespace seqconv::kernels {

/// What weights are stored as, and multiplied as.
enum class WeightType {
  kFloat32,
  /// Half the memory. The inputs of a product are rounded to bfloat16 too where
  /// the processor multiplies it (NarrowProducts); sums are float32.
  kBfloat16,
  /// A quarter: whole numbers of at most 127 in size, in units of each output.
  /// So are inputs, in units of each row, found as it comes. Sums are exact:
  /// the same on every processor.
  kInt8
};

}  // namespace seqconv::kernels

/// The names of the types in options and config.json.
template <>
struct seqconv::EnumNames<seqconv::kernels::WeightType> {
  using WeightType = seqconv::kernels::WeightType;
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, WeightType>>(
          {{"float32", WeightType::kFloat32},
           {"bfloat16", WeightType::kBfloat16},
           {"int8", WeightType::kInt8}});
};
