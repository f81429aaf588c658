#pragma once

#include <vector>

#include "base/enum_names.h"

namespace seqconv::internal::kernels {

/// Instruction sets the inner loops are compiled for. One binary holds all.
enum class Isa { kBaseline, kAvx2, kAvx512 };

/// The best one this processor has (the answer never changes).
Isa best_isa();

/// All that this processor can run, for tests.
std::vector<Isa> supported_isas();

/// The instruction sets that this binary holds, oldest first, whether this
/// processor has them or not.
std::vector<Isa> compiled_isas();

/// Highway's name of the target whose loops run for `isa`, for tests.
const char* target_name(Isa isa);

}  // namespace seqconv::internal::kernels

/// The names of the instruction sets, as `seqconv --version` says them.
template <>
struct seqconv::internal::EnumNames<seqconv::internal::kernels::Isa> {
  using Isa = seqconv::internal::kernels::Isa;
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Isa>>(
      {{"baseline", Isa::kBaseline}, {"avx2", Isa::kAvx2}, {"avx512", Isa::kAvx512}});
};
