#include "cli/version.h"

#include "base/error.h"
#include "cli/libtorch.h"
#include "cli/torch_package.h"
#include "kernels/isa.h"
#include "seqconv/version.h"

namespace seqconv::internal::cli {
namespace {

std::string instruction_sets() {
  std::string text;
  for (const kernels::Isa isa : kernels::compiled_isas())
    text += concat(enum_name(isa), " ");
  return concat(text, "(this processor runs ", enum_name(kernels::best_isa()), ")");
}

std::string libtorch() {
  try {
    if (libtorch_wanted().empty()) {
      const auto package = find_torch_package();
      return package ? concat(
                           "by seqconv-torch ",
                           package->version,
                           " in ",
                           package->program.parent_path().parent_path().string())
                     : "none, without seqconv-torch";
    }
    const LibTorch found = find_libtorch();
    return concat(
        found.version.empty() ? "unknown version" : found.version, " in ", found.folder.string());
  } catch (const Error& error) {
    return concat("not found: ", error.what());
  }
}

}  // namespace

std::string version_text() {
  return concat(
      "seqconv ",
      SEQCONV_VERSION,
      "\ncompiler: ",
      SEQCONV_COMPILER,
      "\nbuild: ",
      SEQCONV_BUILD_TYPE,
      "\ninstruction sets: ",
      instruction_sets(),
      "\nlibtorch: ",
      libtorch());
}

}  // namespace seqconv::internal::cli
