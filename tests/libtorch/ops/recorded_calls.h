#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/gradients.h"
#include "support/observed.h"

/// Which operators of the dispatcher a piece of code calls: for tests that
/// count work.
namespace seqconv::internal::testing {

struct RecordedCall {
  std::string name;  ///< such as "seqconv::talk_backward"
  std::vector<c10::IValue> inputs;
};

/// What work() calls in this thread, and in those that differentiate for it:
/// each device has one of its own, to which callbacks of a thread go along.
template <class Work>
std::vector<RecordedCall> recorded_calls(const Work& work) {
  static std::mutex mutex;
  static std::vector<RecordedCall>* calls = nullptr;
  std::vector<RecordedCall> made;
  calls = &made;
  const auto start = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    const auto inputs = call.inputs();
    const std::lock_guard lock(mutex);
    calls->push_back({call.name(), std::vector<c10::IValue>(inputs.begin(), inputs.end())});
    return nullptr;
  };
  observed(at::RecordFunctionCallback(start), work);
  return made;
}

/// Calls of that name.
inline int64_t count_calls(const std::vector<RecordedCall>& calls, const std::string& name) {
  return std::count_if(
      calls.begin(), calls.end(), [&](const auto& call) { return call.name == name; });
}

/// The list of bools among the inputs of the first call of that name. (The
/// layers of the dispatcher that a call goes through are recorded one by one.)
inline std::vector<bool> mask_of(const std::vector<RecordedCall>& calls, const std::string& name) {
  std::vector<bool> mask;
  const auto call =
      std::find_if(calls.begin(), calls.end(), [&](const auto& some) { return some.name == name; });
  if (call == calls.end())
    return mask;
  for (const c10::IValue& input : call->inputs)
    if (input.isBoolList())
      for (const bool wanted : input.toBoolList())
        mask.push_back(wanted);
  return mask;
}

/// Differentiates sum(run(inputs) * grad) with respect to every set of the
/// (three) inputs: the backward operator `op` is asked for these alone, and
/// they have the bits that they have together.
inline void expect_only_wanted_gradients(
    const TensorFunction& run,
    const std::vector<at::Tensor>& inputs,
    const at::Tensor& grad,
    const std::string& op) {
  const auto all = differentiate(run, inputs, grad).grads;
  for (int set = 1; set < 8; ++set) {
    SCOPED_TRACE(concat("set ", set));
    const std::vector<bool> wanted = {(set & 1) != 0, (set & 2) != 0, (set & 4) != 0};
    std::vector<at::Tensor> in;
    for (size_t i = 0; i < wanted.size(); ++i)
      in.push_back(inputs[i].clone().requires_grad_(wanted[i]));
    const at::Tensor y = run(in);
    const auto calls = recorded_calls([&] { y.backward(grad.to(y.device())); });
    EXPECT_EQ(mask_of(calls, op), wanted);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(in[i].grad().defined(), wanted[i]);
      if (wanted[i]) {
        EXPECT_TRUE(in[i].grad().equal(all[i])) << i;
      }
    }
  }
}

}  // namespace seqconv::internal::testing
