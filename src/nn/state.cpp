#include "seqconv/nn/state.h"

#include <ATen/ops/index_select.h>

namespace seqconv {

void ConvState::reorder(const at::Tensor& parents) {
  window = at::index_select(window, 0, parents);
}

}  // namespace seqconv
