#include "cli/libtorch.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "cli/program_folder.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kVariable = "SEQCONV_TORCH_DIR";
constexpr const char* kLibrary = "lib/libtorch_cpu.so";
constexpr std::string_view kAtBuild = SEQCONV_TORCH_DIR;  // "" for a Python package

struct Place {
  fs::path folder;
  const char* reason;
  bool named = false;  // by the variable

  std::string text() const { return concat(folder.string(), " (", reason, ")"); }
};

// The program of the Python package lies in seqconv_torch/bin, beside the package torch.
Place place() {
  const char* named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0')
    return {named, kVariable, true};
  const fs::path beside = program_folder().parent_path().parent_path() / "torch";
  std::error_code error;
  if (kAtBuild.empty() || fs::exists(beside / kLibrary, error))
    return {beside, "beside the package seqconv_torch"};
  return {kAtBuild, "where it was at the build"};
}

// "2.11" of "2.11.0+cpu": what a compiled library depends on.
std::string series(const std::string& version) {
  const size_t minor = version.find('.');
  return version.substr(0, version.find('.', minor + 1));
}

std::string advice(const Place& place) {
  std::string text = concat(
      "\nSet ",
      kVariable,
      " to the folder of an installed torch ",
      series(libtorch_wanted()),
      ", the one that holds lib/ (in Python: os.path.dirname(torch.__file__))");
  if (place.named && !kAtBuild.empty())
    text += concat(", or unset it for the one of the build, ", kAtBuild);
  return text + ".";
}

// A torch package says it in version.py, the archive of LibTorch in
// build-version.
std::string version_in(const fs::path& folder) {
  std::ifstream python(folder / "version.py");
  for (std::string line; std::getline(python, line);) {
    const size_t first = line.find_first_of("'\"");
    if (line.starts_with("__version__ = ") && first != line.npos)
      return line.substr(first + 1, line.find_last_of("'\"") - first - 1);
  }
  std::ifstream archive(folder / "build-version");
  std::string line;
  std::getline(archive, line);
  return line;
}

}  // namespace

std::string libtorch_wanted() {
  return SEQCONV_TORCH_VERSION;
}

LibTorch find_libtorch() {
  if (libtorch_wanted().empty())
    fail("this program was built without LibTorch");
  const Place at = place();
  std::error_code error;
  const fs::path folder = fs::canonical(at.folder, error);
  if (error || !fs::is_regular_file(folder / kLibrary, error))
    fail(
        "LibTorch ",
        series(libtorch_wanted()),
        " is needed, but there is no ",
        kLibrary,
        " in ",
        at.text(),
        advice(at));
  const std::string version = version_in(folder);
  if (!version.empty() && series(version) != series(libtorch_wanted()))
    fail(
        "this program was built against LibTorch ",
        libtorch_wanted(),
        " and can load no other series, but found ",
        version,
        " in ",
        at.text(),
        advice(at));
  return {folder, version};
}

void load_libtorch() {
  const fs::path library = find_libtorch().folder / kLibrary;
  if (::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    const std::string reason = ::dlerror();
    fail("cannot load LibTorch: ", reason, advice(place()));
  }
}

}  // namespace seqconv::internal::cli
