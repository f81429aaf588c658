#include "seqconv/nn/state.h"

#include <ATen/ops/index_select.h>

namespace seqconv {
namespace {

struct Reorder {
  const at::Tensor& parents;

  void operator()(ConvState& state) const {
    state.window = at::index_select(state.window, 0, parents);
  }
  void operator()(AttentionState& state) const {
    state.keys = at::index_select(state.keys, 0, parents);
    state.values = at::index_select(state.values, 0, parents);
  }
  void operator()(AverageState& state) const {
    state.sums = at::index_select(state.sums, 0, parents);
  }
};

}  // namespace

void reorder(MixerState& state, const at::Tensor& parents) {
  std::visit(Reorder{parents}, state);
}

}  // namespace seqconv
