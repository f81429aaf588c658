#pragma once

#include <vector>

namespace seqconv::kernels {

/// Instruction sets the inner loops are compiled for. One binary holds all.
enum class Isa { kBaseline, kAvx2, kAvx512 };

/// The best one this processor has (the answer never changes).
Isa best_isa();

/// All that this processor can run, for tests.
std::vector<Isa> supported_isas();

}  // namespace seqconv::kernels
