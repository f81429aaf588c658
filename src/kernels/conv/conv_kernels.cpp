// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_kernels.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/conv/channel_taps-inl.h"
#include "kernels/conv/convolve-inl.h"
#include "kernels/conv/rows-inl.h"
#include "kernels/conv/softmax-inl.h"
#include "kernels/conv/tap_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  template <class S, class A>
  static const ConvKernels<S, A>& rows() {
    static constexpr ConvKernels<S, A> kTable = {
        .lanes = kLanes<A>,
        .convolve = convolve<S, A>,
        .weighted_sum = weighted_sum<S, A>,
        .end_rows = end_rows<S, A>,
        .spread = spread<A>,
        .softmax = softmax<S, A>,
        .narrow = narrow<S, A>};
    return kTable;
  }
  template <class S, class A>
  static const ConvGradKernels<S, A>& gradients() {
    static constexpr ConvGradKernels<S, A> kTable = {
        .stage = stage<S, A>,
        .tap_products = tap_products<A>,
        .shared_tap_products = shared_tap_products<A>,
        .channel_products = channel_products<A>,
        .head_products = head_products<A>,
        .silu_backward = silu_backward<S, A>,
        .softmax_backward = softmax_backward<S, A>};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

template <class S, class A>
const ConvKernels<S, A>& conv_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, rows<S, A>());
}
template <class S, class A>
const ConvGradKernels<S, A>& conv_grad_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, gradients<S, A>());
}

template const ConvKernels<float, float>& conv_kernels(Isa isa);
#ifndef SEQCONV_FLOAT_ONLY
template const ConvKernels<double, double>& conv_kernels(Isa isa);
template const ConvKernels<BFloat16, float>& conv_kernels(Isa isa);
template const ConvGradKernels<float, float>& conv_grad_kernels(Isa isa);
template const ConvGradKernels<double, double>& conv_grad_kernels(Isa isa);
template const ConvGradKernels<BFloat16, float>& conv_grad_kernels(Isa isa);
#endif

}  // namespace seqconv::internal::kernels
#endif
