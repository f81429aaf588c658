#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/observed.h"

namespace seqconv::internal::testing {

/// Types of the tensors that products of matrices and convolutions are given in
/// work(), in this thread: "aten::mm of Float, BFloat16", each text once.
/// Autograd's part counts too on devices whose graph runs in this thread.
template <class Work>
std::set<std::string> product_types(const Work& work) {
  thread_local std::set<std::string>* found = nullptr;
  std::set<std::string> calls;
  found = &calls;
  const auto start = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    static const std::set<std::string> kProducts = {
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::convolution",
        "aten::convolution_backward"};
    if (found == nullptr || !kProducts.contains(call.name()))
      return nullptr;
    std::string text = std::string(call.name()) + " of ";
    const char* between = "";
    for (const c10::IValue& input : call.inputs())
      if (input.isTensor() && input.toTensor().defined()) {
        text += between;
        text += toString(input.toTensor().scalar_type());
        between = ", ";
      }
    found->insert(text);
    return nullptr;
  };
  observed(at::RecordFunctionCallback(start), work);
  found = nullptr;
  return calls;
}

}  // namespace seqconv::internal::testing
