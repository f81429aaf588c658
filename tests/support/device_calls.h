#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/observed.h"

/// Watches which devices the operators of a piece of code are given. The device
/// `meta` stands for one that is not there: it has shapes and no values, so
/// that reading one fails by itself, but most of its operators accept tensors
/// of the host beside its own, which a real device refuses.
namespace seqconv::internal::testing {

/// The devices of a call's inputs with at least one dimension, as a text when
/// they differ ("cpu, meta"), else nothing.
inline std::optional<std::string> mixed_devices(const at::RecordFunction& call) {
  std::vector<at::Device> devices;
  const auto add = [&](const at::Device& device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  };
  const auto add_tensor = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.dim() > 0)
      add(tensor.device());
  };
  for (const c10::IValue& input : call.inputs()) {
    if (input.isTensor()) {
      add_tensor(input.toTensor());
    } else if (input.isTensorList()) {
      for (const at::Tensor& tensor : input.toTensorVector())
        add_tensor(tensor);
    } else if (input.isList()) {
      for (const c10::IValue& item : input.toListRef())
        if (item.isTensor())
          add_tensor(item.toTensor());
    } else if (input.isDevice() && std::string(call.name()) == "aten::_to_copy") {
      add(input.toDevice());
    }
  }
  if (devices.size() < 2)
    return std::nullopt;
  std::string text;
  for (const at::Device& device : devices)
    text += (text.empty() ? "" : ", ") + device.str();
  return text;
}

/// Calls, as "aten::mm of cpu, meta", that work() makes with inputs of more
/// than one device, outside of the one place that moves tensors to a device
/// (seqconv::to_device). Autograd's part counts too, as it runs in
/// this thread.
template <class Work>
std::vector<std::string> calls_of_mixed_devices(const Work& work) {
  struct Moving : at::ObserverContext {};
  thread_local int moving = 0;
  thread_local std::vector<std::string>* found = nullptr;
  std::vector<std::string> calls;
  found = &calls;
  const auto start = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    if (std::string(call.name()) == "seqconv::to_device") {
      ++moving;
      return std::make_unique<Moving>();
    }
    if (found == nullptr || moving > 0)
      return nullptr;
    if (const auto devices = mixed_devices(call))
      found->push_back(std::string(call.name()) + " of " + *devices);
    return nullptr;
  };
  const auto end = [](const at::RecordFunction&, at::ObserverContext* context) {
    if (context != nullptr)
      --moving;
  };
  observed(at::RecordFunctionCallback(start, end), work);
  found = nullptr;
  return calls;
}

/// Bytes that work() reads from a device (seqconv::to_host), as many
/// as the tensors hold.
template <class Work>
int64_t bytes_read(const Work& work) {
  thread_local int64_t* found = nullptr;
  int64_t bytes = 0;
  found = &bytes;
  const auto start = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
    if (found != nullptr && std::string(call.name()) == "seqconv::to_host")
      *found += static_cast<int64_t>(call.inputs()[0].toTensor().nbytes());
    return nullptr;
  };
  observed(at::RecordFunctionCallback(start), work);
  found = nullptr;
  return bytes;
}

}  // namespace seqconv::internal::testing
