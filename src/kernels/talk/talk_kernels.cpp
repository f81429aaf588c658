// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/talk/talk_kernels.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/talk/talk_backward-inl.h"
#include "kernels/talk/talk_forward-inl.h"
#include "kernels/talk/talk_windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  template <class S, class A>
  static const TalkKernels<S, A>& talk() {
    static constexpr TalkKernels<S, A> kTable = {
        .extremes = talk_extremes<S, A>,
        .windows = talk_windows<S, A>,
        .forward = for_columns<ForwardColumns, S, A, TalkTile<S, A>>};
    return kTable;
  }
  template <class S, class A>
  static TalkColumnsBackward<S, A> talk_gradients() {
    return for_columns<BackwardColumns, S, A, TalkGradTile<S, A>>;
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

template <class S, class A>
const TalkKernels<S, A>& talk_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, talk<S, A>());
}

template <class S, class A>
TalkColumnsBackward<S, A> talk_columns_backward(Isa isa) {
  SEQCONV_CHOOSE(isa, talk_gradients<S, A>());
}

template const TalkKernels<float, float>& talk_kernels(Isa isa);
#ifndef SEQCONV_FLOAT_ONLY
template const TalkKernels<double, double>& talk_kernels(Isa isa);
template const TalkKernels<BFloat16, float>& talk_kernels(Isa isa);
template TalkColumnsBackward<float, float> talk_columns_backward(Isa isa);
template TalkColumnsBackward<double, double> talk_columns_backward(Isa isa);
template TalkColumnsBackward<BFloat16, float> talk_columns_backward(Isa isa);
#endif

}  // namespace seqconv::internal::kernels
#endif
