// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/convolve_bfloat16.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/conv/convolve-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template void convolve(const ConvTile<BFloat16, float>& tile);

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
