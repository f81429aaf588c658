// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/tap_ops.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/conv/dropconnect-inl.h"
#include "kernels/conv/normalize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  template <class A>
  static const TapOps<A>& taps() {
    static constexpr TapOps<A> kTable = {
        .softmax = softmax_any<A>,
        .normalize = normalize_taps<A>,
        .normalize_backward = normalize_taps_backward<A>,
        .multiply = multiply<A>,
        .drop = drop_tile<A>};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {

template <class A>
const TapOps<A>& tap_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, taps<A>());
}

template const TapOps<float>& tap_ops(Isa isa);
template const TapOps<double>& tap_ops(Isa isa);

}  // namespace seqconv::kernels
#endif
