#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <memory>
#include <typeinfo>
#include <utility>

namespace seqconv::internal {

/// Holds what a layer remembers between two steps, for N rows; `reorder` makes
/// new row r continue old row parents[r], parents [N'] int64.
template <class State>
concept RowState = requires(State state, const at::Tensor& parents) {
  { state.reorder(parents) } -> std::same_as<void>;
};

/// The past of a convolution: the last inputs, [N, L, C], a ring over time
/// whose size does not grow (L = K-1, or TaLK's largest reach).
struct ConvState {
  at::Tensor window;

  void reorder(const at::Tensor& parents);
};

/// The state of a mixer of any kind. The state that it holds stands beside its
/// module.
class MixerState {
 public:
  template <RowState State>
  MixerState(State state) : held_(std::make_unique<Holder<State>>(std::move(state))) {}

  /// The state that is held; Error when that is not a State.
  template <RowState State>
  const State& as() const {
    const Held& held = *held_;
    TORCH_CHECK(
        typeid(held) == typeid(Holder<State>),
        "the state of a mixer must be that of its own module");
    return static_cast<const Holder<State>&>(held).state;
  }
  template <RowState State>
  State& as() {
    return const_cast<State&>(std::as_const(*this).as<State>());
  }

  void reorder(const at::Tensor& parents) { held_->reorder(parents); }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual void reorder(const at::Tensor& parents) = 0;
  };
  template <class State>
  struct Holder : Held {
    explicit Holder(State held) : state(std::move(held)) {}
    void reorder(const at::Tensor& parents) override { state.reorder(parents); }
    State state;
  };

  std::unique_ptr<Held> held_;
};

/// Counts the inputs that a decoder has seen, on the host and as the tensor
/// that the step operators read.
struct StepPosition {
  int64_t count = 0;
  at::Tensor tensor;  ///< [1] int64
};

}  // namespace seqconv::internal
