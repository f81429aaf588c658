#include <torch/library.h>

#include "ops/conv_autograd.h"

namespace seqconv::ops {
namespace {

struct DynamicConv {
  static constexpr const char* kName = "dynamicconv";
  static constexpr const char* kStepName = "dynamicconv_step";
  static constexpr const char* kForward = "seqconv::dynamicconv";
  static constexpr const char* kBackward = "seqconv::dynamicconv_backward";
  static constexpr const char* kStep = "seqconv::dynamicconv_step";
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  m.impl("dynamicconv", conv_autograd<DynamicConv>);
  m.impl("dynamicconv_backward", conv_backward_autograd<DynamicConv>);
  m.impl("dynamicconv_step", conv_step_autograd<DynamicConv>);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  m.impl("dynamicconv_step", conv_step_inplace<DynamicConv>);
}

}  // namespace seqconv::ops
