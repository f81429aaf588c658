#include "seqconv/kernels/conv.h"

#include "kernels/conv/position_conv.h"

namespace seqconv::kernels {

template <class S, class L>
void dynamicconv_forward(const ConvForward<S, L>& args, const Execution& run) {
  position_conv_forward(args, position_logits(args.shape, args.logits), run);
}

template <class S, class L>
void dynamicconv_backward(
    const ConvBackward<S, L>& args,
    const Execution& run) {
  position_conv_backward(args, run);
}

#define SEQCONV_INSTANTIATE(S, L)     \
  template void dynamicconv_forward(  \
      const ConvForward<S, L>&,       \
      const Execution&);              \
  template void dynamicconv_backward( \
      const ConvBackward<S, L>&,      \
      const Execution&);

SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, BFloat16)
SEQCONV_INSTANTIATE(BFloat16, float)

}  // namespace seqconv::kernels
