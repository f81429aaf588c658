#include "cli/engine_loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "cli/libtorch.h"
#include "cli/program_folder.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kLibrary = "libseqconv_engine.so";

const EngineTable* load() {
  if (libtorch_wanted().empty())
    fail("this verb needs LibTorch, which this program was built without, as that of the Python "
         "package is: install seqconv from its sources (docs/installing.md)");
  const std::filesystem::path folder = program_folder();
  const std::filesystem::path candidates[] = {
      folder.parent_path() / "lib" / kLibrary,
      folder.parent_path() / "lib" / "seqconv" / kLibrary,
      folder / kLibrary};
  std::string looked;
  for (const auto& path : candidates) {
    if (!std::filesystem::exists(path)) {
      looked += " " + path.string() + ";";
      continue;
    }
    load_libtorch();
    void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr)
      fail("cannot load the engine library: ", ::dlerror());
    using Entry = const EngineTable* (*)();
    const auto entry = reinterpret_cast<Entry>(::dlsym(library, "seqconv_engine"));
    if (entry == nullptr)
      fail(path.string(), " is not an engine library: ", ::dlerror());
    const EngineTable* table = entry();
    if (table->version != kEngineVersion)
      fail(
          path.string(),
          " has interface version ",
          table->version,
          ", but this program needs version ",
          kEngineVersion,
          "; build both again");
    return table;
  }
  fail(
      "this verb needs ",
      kLibrary,
      ", which is in none of these places:",
      looked,
      " build the target seqconv_engine, or install again from the sources; the Python package "
      "seqconv is without it");
}

}  // namespace

const EngineTable& engine() {
  static const EngineTable* table = load();
  table->set_log_level(log_level());
  return *table;
}

}  // namespace seqconv::internal::cli
