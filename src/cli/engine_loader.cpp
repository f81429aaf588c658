#include "cli/engine_loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "cli/libtorch.h"
#include "cli/program_folder.h"
#include "cli/torch_package.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kLibrary = "libseqconv_engine.so";

const EngineTable* open_engine(const std::filesystem::path& path) {
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

const EngineTable* load() {
  constexpr const char* kInstall =
      "install the Python package seqconv-torch beside torch, or all from the sources "
      "(docs/installing.md)";
  if (libtorch_wanted().empty())
    become_torch_package(
        concat("this verb needs LibTorch, which this program was built without: ", kInstall));
  const std::filesystem::path folder = program_folder();
  const std::filesystem::path candidates[] = {
      folder.parent_path() / "lib" / kLibrary,
      folder.parent_path() / "lib" / "seqconv" / kLibrary,
      folder / kLibrary};
  std::string looked;
  for (const auto& path : candidates) {
    if (std::filesystem::exists(path))
      return open_engine(path);
    looked += " " + path.string() + ";";
  }
  become_torch_package(concat(
      "this verb needs ",
      kLibrary,
      ", which is in none of these places:",
      looked,
      " build the target seqconv_engine, or ",
      kInstall));
}

}  // namespace

const EngineTable& engine() {
  static const EngineTable* table = load();
  table->set_log_level(log_level());
  return *table;
}

}  // namespace seqconv::internal::cli
