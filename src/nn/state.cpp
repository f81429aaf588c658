#include "seqconv/nn/state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

namespace seqconv {
namespace {

struct Reorder {
  const at::Tensor& parents;

  void operator()(ConvState& state) const {
    state.window = at::index_select(state.window, 0, parents);
  }
  void operator()(AttentionState& state) const {
    state.keys = at::index_select(in_use(state, state.keys), 0, parents);
    state.values = at::index_select(in_use(state, state.values), 0, parents);
    state.end = state.kept();
    state.begin = 0;
  }
  void operator()(AverageState& state) const {
    state.sums = at::index_select(state.sums, 0, parents);
  }
};

/// A buffer for `room` places that begins with what is in use.
at::Tensor
with_room(const AttentionState& state, const at::Tensor& buffer, int64_t room) {
  at::Tensor larger = at::empty(
      {buffer.size(0), buffer.size(1), room, buffer.size(3)},
      buffer.options());
  larger.narrow(2, 0, state.kept()).copy_(in_use(state, buffer));
  return larger;
}

}  // namespace

at::Tensor in_use(const AttentionState& state, const at::Tensor& buffer) {
  return buffer.narrow(2, state.begin, state.kept());
}

void append(
    AttentionState& state,
    const at::Tensor& keys,
    const at::Tensor& values) {
  const int64_t added = keys.size(2);
  if (state.end + added > state.keys.size(2)) {
    const int64_t room = 2 * (state.kept() + added);
    state.keys = with_room(state, state.keys, room);
    state.values = with_room(state, state.values, room);
    state.end = state.kept();
    state.begin = 0;
  }
  state.keys.narrow(2, state.end, added).copy_(keys);
  state.values.narrow(2, state.end, added).copy_(values);
  state.end += added;
}

void reorder(MixerState& state, const at::Tensor& parents) {
  std::visit(Reorder{parents}, state);
}

}  // namespace seqconv
