// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/talk/talk_heads.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/talk/talk_heads_backward-inl.h"
#include "kernels/talk/talk_heads_forward-inl.h"
#include "kernels/talk/talk_heads_step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  template <class S, class O>
  static const TalkHeadsKernels<S, O>& talk_heads() {
#if HWY_TARGET == HWY_SCALAR
    static constexpr TalkHeadsKernels<S, O> kTable = {};
#else
    static constexpr TalkHeadsKernels<S, O> kTable = {
        .lanes = kLanes<AccumulatorOf<S>>,
        .forward = forward_heads<S, O>,
        .step = step_heads<S, O>,
        .row = row_of_heads<S, O>};
#endif
    return kTable;
  }
  template <class S, class O>
  static TalkHeadsBackward<S, O> talk_heads_gradients() {
#if HWY_TARGET == HWY_SCALAR
    return nullptr;
#else
    return backward_heads<S, O>;
#endif
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

template <class S, class O>
const TalkHeadsKernels<S, O>& talk_heads_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, talk_heads<S, O>());
}

template <class S, class O>
TalkHeadsBackward<S, O> talk_heads_backward(Isa isa) {
  SEQCONV_CHOOSE(isa, talk_heads_gradients<S, O>());
}

template const TalkHeadsKernels<float, float>& talk_heads_kernels(Isa isa);
#ifndef SEQCONV_FLOAT_ONLY
template const TalkHeadsKernels<double, double>& talk_heads_kernels(Isa isa);
template const TalkHeadsKernels<BFloat16, BFloat16>& talk_heads_kernels(Isa isa);
template const TalkHeadsKernels<BFloat16, float>& talk_heads_kernels(Isa isa);
template TalkHeadsBackward<float, float> talk_heads_backward(Isa isa);
template TalkHeadsBackward<double, double> talk_heads_backward(Isa isa);
template TalkHeadsBackward<BFloat16, BFloat16> talk_heads_backward(Isa isa);
template TalkHeadsBackward<BFloat16, float> talk_heads_backward(Isa isa);
#endif

}  // namespace seqconv::internal::kernels
#endif
