// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear_kernels.cpp"
#include "kernels/each_target.h"
// clang-format on
#include "kernels/linear_kernels.h"
#include "kernels/packed_linear-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  static const LinearKernels& linear() {
    static constexpr LinearKernels kTable = {
        .panel = kPanel,
        .rows = kLinearRows,
        .multiply = multiply_block};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {

const LinearKernels& linear_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, linear());
}

}  // namespace seqconv::kernels
#endif
