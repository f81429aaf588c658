#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/safetensors.h"

namespace seqconv::internal {

/// A class of storages, as the persistent ids name them.
struct StorageClass {
  std::string_view name;
  int64_t element_size;
  std::optional<ElementType> type;  ///< empty: no parameter has it
};

inline constexpr StorageClass kStorageClasses[] = {
    {"FloatStorage", 4, ElementType::kF32},
    {"HalfStorage", 2, ElementType::kF16},
    {"BFloat16Storage", 2, ElementType::kBF16},
    {"DoubleStorage", 8, ElementType::kF64},
    {"LongStorage", 8, ElementType::kI64},
    {"IntStorage", 4, ElementType::kI32},
    {"ByteStorage", 1, ElementType::kU8},
    {"ShortStorage", 2, {}},
    {"CharStorage", 1, {}},
    {"BoolStorage", 1, {}},
    {"ComplexFloatStorage", 8, {}},
    {"ComplexDoubleStorage", 16, {}},
};

}  // namespace seqconv::internal
