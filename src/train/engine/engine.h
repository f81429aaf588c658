#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/device_name.h"
#include "base/log.h"
#include "pipeline/system.h"

/// The door between the torch-free program and the shared library with what
/// needs LibTorch: training, and the backend that runs models in it. Plain
/// structs and abstract classes only.
namespace seqconv::internal {

struct TrainArguments {
  std::string config;                  ///< a file; "" where overrides say all
  std::string configurations;          ///< folder of those that go by name
  std::vector<std::string> overrides;  ///< --set key=value
  std::string output;
  bool resume = false;
  std::string init_from;
  Links links = Links::kInside;  ///< of --init-from, stories and a resumed run
  bool dry_run = false;
};

/// Says how LibTorch runs models.
struct BackendArguments {
  /// The threads that share an operation on the CPU; 0 = all cores.
  int64_t threads = 0;
  DeviceName device;
  bool bfloat16 = false;  ///< instead of float32
};

/// The kinds of text that `describe_config` writes: a configuration, or its
/// page of the reference.
enum class ConfigFormat { kToml, kMarkdown };

/// Raised whenever anything in this file changes.
inline constexpr int kEngineVersion = 12;

/// The functions of libseqconv_engine.so, found by the name of its one
/// exported symbol, `extern "C" const EngineTable* seqconv_engine()`. They
/// throw seqconv::internal::Error and nothing else. Both sides hold their own
/// copy of the base layer: what it keeps in variables (the log level) is passed
/// on here.
struct EngineTable {
  int version = kEngineVersion;
  void (*set_log_level)(LogLevel) = nullptr;
  void (*train)(const TrainArguments&) = nullptr;
  /// Every key of a training configuration with default and help.
  std::string (*describe_config)(ConfigFormat) = nullptr;
  /// Opens models in LibTorch. It stays as long as the library.
  const BackendOpener& (*backends)(const BackendArguments&) = nullptr;
  /// Tells whether there is a CUDA device that "auto" would take.
  bool (*sees_cuda)() = nullptr;
};

}  // namespace seqconv::internal
