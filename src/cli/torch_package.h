#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace seqconv::internal::cli {

/// The Python package seqconv-torch: this program with all that needs LibTorch.
struct TorchPackage {
  std::filesystem::path program;  ///< absolute
  std::filesystem::path torch;    ///< the folder of the package torch beside it
  std::string version;            ///< of seqconv: "0.1.0"
};

/// The package that this environment's Python interpreter finds: the one that the environment
/// variable SEQCONV_PYTHON names, or `python3` beside the program. Imports nothing and never
/// looks in the working folder. Nothing without an interpreter or package; Error for a package
/// without the program, or without torch.
std::optional<TorchPackage> find_torch_package();

/// Goes on as that package's program with the same command line, in this process. Error if
/// there is none, or one of another version; its text is `missing` and what to install.
[[noreturn]] void become_torch_package(const std::string& missing);

}  // namespace seqconv::internal::cli
