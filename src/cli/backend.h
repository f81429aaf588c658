#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/enum_names.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal {

/// What runs a model.
enum class BackendKind { kRuntime, kLibTorch };
template <>
struct EnumNames<BackendKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, BackendKind>>(
      {{"runtime", BackendKind::kRuntime}, {"libtorch", BackendKind::kLibTorch}});
};

namespace cli {

/// What runs a model, and in how many threads; 0 = one for each core.
struct BackendFlags {
  BackendKind kind = BackendKind::kRuntime;
  ComputeType compute = ComputeType::kModel;
  int64_t threads = 0;
  std::string device = "cpu";
  int64_t logits_megabytes = RuntimeOptions().logits_bytes >> 20;  ///< of the runtime
};

/// Adds `--backend NAME`, `--compute-type NAME`, `--threads N` and `--device
/// NAME`; in `group` of the help where it is not "".
void add_backend(CLI::App& app, BackendFlags& flags, const std::string& group = "");

/// An opener of models as the flags say; LibTorch and the engine are loaded for
/// their backend alone. UsageError for a type that LibTorch does not compute
/// in.
const BackendOpener& backend(const BackendFlags& flags);

/// Whether LibTorch runs the model: asked for, or on a CUDA device.
bool is_libtorch(const BackendFlags& flags);

/// How many batches it is to work on at a time: LibTorch shares out every
/// operation instead.
int64_t workers(const BackendFlags& flags);

}  // namespace cli
}  // namespace seqconv::internal
