// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/talk/talk_kernels.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/talk/talk_gradient-inl.h"
#include "kernels/talk/talk_offsets-inl.h"
#include "kernels/talk/talk_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  template <class S, class A>
  static const TalkKernels<S, A>& talk() {
    static constexpr TalkKernels<S, A> kTable = {
        .extremes = talk_extremes<S, A>,
        .distances = talk_distances<S, A>,
        .offset_gradients = talk_offset_gradients<S, A>,
        .windows = talk_windows<A>,
        .edges = talk_edges<A>,
        .pairs = kTalkPairs<A>,
        .forward = talk_forward_tile<S, A>,
        .gradient = talk_gradient_tile<S, A>};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {

template <class S, class A>
const TalkKernels<S, A>& talk_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, talk<S, A>());
}

template const TalkKernels<float, float>& talk_kernels(Isa isa);
template const TalkKernels<double, double>& talk_kernels(Isa isa);
template const TalkKernels<BFloat16, float>& talk_kernels(Isa isa);

}  // namespace seqconv::kernels
#endif
