#include <torch/library.h>

#include "ops/conv_autograd.h"

namespace seqconv::ops {
namespace {

struct LightConv {
  static constexpr const char* kName = "lightconv";
  static constexpr const char* kStepName = "lightconv_step";
  static constexpr const char* kForward = "seqconv::lightconv";
  static constexpr const char* kBackward = "seqconv::lightconv_backward";
  static constexpr const char* kStep = "seqconv::lightconv_step";
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  m.impl("lightconv", conv_autograd<LightConv>);
  m.impl("lightconv_backward", conv_backward_autograd<LightConv>);
  m.impl("lightconv_step", conv_step_autograd<LightConv>);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  m.impl("lightconv_step", conv_step_inplace<LightConv>);
}

}  // namespace seqconv::ops
