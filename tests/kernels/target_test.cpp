#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "seqconv/kernels/isa.h"

/// Which loops the tests of this program run: without this, a program that is
/// built for the emulation might test native vectors once more.
namespace seqconv::kernels {
namespace {

#ifdef HWY_COMPILE_ONLY_EMU128
TEST(KernelTargets, AreTheEmulationAlone) {
  EXPECT_EQ(supported_isas(), std::vector<Isa>{Isa::kBaseline});
  EXPECT_STREQ(target_name(Isa::kBaseline), "EMU128");
}
#elif defined(__x86_64__)
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
        EXPECT_THAT(name, ::testing::AnyOf("SSSE3", "SCALAR", "EMU128"));
        break;
    }
  }
}
#endif

}  // namespace
}  // namespace seqconv::kernels
