#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/isa.h"

namespace seqconv::internal::kernels {
namespace {

// The build with ASan has the emulation: HWY_BROKEN_EMU128=0 asks for it.
#if !defined(SEQCONV_FEW_TARGETS)
constexpr const char* kBaseline = "SSSE3";
#elif defined(HWY_BROKEN_EMU128)
constexpr const char* kBaseline = "EMU128";
#else
constexpr const char* kBaseline = "SCALAR";
#endif

#if defined(__x86_64__)
TEST(KernelTargets, AreNamedByTheInstructionSets) {
  for (const Isa isa : supported_isas()) {
    const std::string name = target_name(isa);
    switch (isa) {
      case Isa::kAvx512:
        EXPECT_EQ(name, "AVX3");
        break;
      case Isa::kAvx2:
        EXPECT_EQ(name, "AVX2");
        break;
      case Isa::kBaseline:
        EXPECT_EQ(name, kBaseline);
        break;
    }
  }
}
#endif

}  // namespace
}  // namespace seqconv::internal::kernels
