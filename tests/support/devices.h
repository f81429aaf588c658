#pragma once

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"

/// The devices that tests of operators run on: the CPU, and a CUDA device where
/// there is one. The operators' CUDA library (and LibTorch's CUDA half, which
/// the tests are not linked with) are loaded when they are first asked for:
/// SEQCONV_OPS_CUDA_LIBRARY of the environment, or of the build.
namespace seqconv::internal::testing {

/// Why there is no CUDA device to test on; empty where there is one.
inline const std::string& missing_cuda() {
  static const std::string reason = []() -> std::string {
    const char* library = std::getenv("SEQCONV_OPS_CUDA_LIBRARY");
#ifdef SEQCONV_OPS_CUDA_LIBRARY
    if (library == nullptr)
      library = SEQCONV_OPS_CUDA_LIBRARY;
#endif
    if (library == nullptr)
      return "the operators' CUDA library was not built (preset cuda), and "
             "SEQCONV_OPS_CUDA_LIBRARY names none";
    for (const char* const name : {"libtorch_cuda.so", library})
      if (dlopen(name, RTLD_NOW | RTLD_GLOBAL) == nullptr)
        return concat(name, " cannot be loaded: ", dlerror());
    if (!at::hasCUDA())
      return "LibTorch finds no CUDA device";
    return {};
  }();
  return reason;
}

/// LibTorch asks once whether there is CUDA, and remembers: its CUDA half must
/// be there before the first test.
inline const bool kHasCuda = missing_cuda().empty();

inline at::DeviceType& test_device_type() {
  static at::DeviceType type = at::kCPU;
  return type;
}
/// Where operators run at present (libtorch/ops/on_device.h).
inline at::Device test_device() {
  return at::Device(test_device_type());
}

/// Makes another device the present one for as long as it lives.
class DeviceScope {
 public:
  explicit DeviceScope(at::DeviceType type) : before_(test_device_type()) {
    test_device_type() = type;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() { test_device_type() = before_; }

 private:
  at::DeviceType before_;
};

/// All devices there are. Says once why CUDA is not among them.
inline std::vector<at::DeviceType> devices() {
  static const std::vector<at::DeviceType> all = [] {
    if (missing_cuda().empty())
      return std::vector<at::DeviceType>{at::kCPU, at::kCUDA};
    std::cout << "on the CPU only: " << missing_cuda() << '\n';
    return std::vector<at::DeviceType>{at::kCPU};
  }();
  return all;
}

/// The types that operators take on the present device.
inline std::vector<at::ScalarType> types() {
  if (test_device_type() == at::kCUDA)
    return {at::kFloat, at::kBFloat16, at::kHalf};
  return {at::kDouble, at::kFloat, at::kBFloat16};
}

/// A parameter of a test beside its device.
template <class T>
struct OnDevice {
  T value{};
  at::DeviceType device = at::kCPU;

  operator T() const { return value; }
};
template <class T>
std::ostream& operator<<(std::ostream& out, const OnDevice<T>& parameter) {
  return out << parameter.value;
}

/// To be called first in a fixture's SetUp: where the device is missing, the
/// test is skipped, or fails where SEQCONV_CUDA_REQUIRED=1.
#define SEQCONV_REQUIRE_DEVICE(type)                                                    \
  do {                                                                                  \
    if ((type) == at::kCUDA && !::seqconv::internal::testing::missing_cuda().empty()) { \
      const char* required = std::getenv("SEQCONV_CUDA_REQUIRED");                      \
      if (required != nullptr && std::string(required) == "1")                          \
        FAIL() << ::seqconv::internal::testing::missing_cuda();                         \
      GTEST_SKIP() << ::seqconv::internal::testing::missing_cuda();                     \
    }                                                                                   \
  } while (false)

}  // namespace seqconv::internal::testing
