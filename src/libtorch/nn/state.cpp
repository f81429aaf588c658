#include "libtorch/nn/state.h"

#include <ATen/ops/index_select.h>

namespace seqconv::internal {

void ConvState::reorder(const at::Tensor& parents) {
  window = at::index_select(window, 0, parents);
}

}  // namespace seqconv::internal
