#include "base/library_path.h"

#include <dlfcn.h>

namespace seqconv::internal {

std::filesystem::path beside_library_of(const void* address, const char* file) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return file;
  return std::filesystem::path(info.dli_fname).parent_path() / file;
}

}  // namespace seqconv::internal
