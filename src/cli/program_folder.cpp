#include "cli/program_folder.h"

#include <system_error>

#include "base/error.h"

namespace seqconv::internal::cli {

std::filesystem::path program_folder() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    fail("cannot find the program's own folder: ", error.message());
  return program.parent_path();
}

}  // namespace seqconv::internal::cli
