#pragma once

#include <filesystem>
#include <string>

namespace seqconv::internal::cli {

/// LibTorch is not part of an installation: where it lies, and which it is.
struct LibTorch {
  std::filesystem::path folder;  ///< absolute; holds lib/libtorch_cpu.so
  std::string version;           ///< "2.11.0+cpu"; empty where the folder does not say
};

/// The version that the engine was built against: "2.11.0+cpu".
std::string libtorch_wanted();

/// The folder that the environment variable SEQCONV_TORCH_DIR names; where it
/// is not set, the Python package torch beside seqconv_torch, if the program
/// is of that, or the one of the build. Loads nothing. Error that says what
/// was looked for, where, and what to set, when LibTorch is not there or is of
/// another series (2.10 for 2.11).
LibTorch find_libtorch();

/// Loads what find_libtorch() finds: libraries that need it take that one,
/// wherever their own run paths point.
void load_libtorch();

}  // namespace seqconv::internal::cli
