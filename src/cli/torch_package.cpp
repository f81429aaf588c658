#include "cli/torch_package.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/program_folder.h"
#include "seqconv/version.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPython = "SEQCONV_PYTHON";
constexpr const char* kTorch = "SEQCONV_TORCH_DIR";

// A folder a line, of an editable installation's the one that the build fills. An entry "" of
// the path would be the working folder.
constexpr const char* kFind = R"(import os, sys
sys.path[:] = [folder for folder in sys.path if folder]
from importlib.util import find_spec
for name, file in ('seqconv_torch', 'bin/seqconv'), ('torch', 'lib/libtorch_cpu.so'):
    found = find_spec(name)
    folders = list(found.submodule_search_locations or ()) if found else []
    folders.sort(key=lambda folder: not os.path.exists(os.path.join(folder, file)))
    print(folders[0] if folders else ''))";

fs::path interpreter() {
  const char* named = std::getenv(kPython);
  return named != nullptr && *named != '\0' ? fs::path(named) : program_folder() / "python3";
}

// The standard output of a program; "" where it cannot be started or fails.
std::string output_of(std::vector<std::string> command) {
  int ends[2];
  if (::pipe(ends) != 0)
    return "";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, ends[0]);
  ::posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (std::string& argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failure =
      ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  if (failure == 0) {
    char buffer[4096];
    for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) != 0;) {
      if (count > 0)
        text.append(buffer, static_cast<size_t>(count));
      else if (errno != EINTR)
        break;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0)
      text.clear();
  }
  ::close(ends[0]);
  return text;
}

// "0.1.0" of _build.py, which the package's build has written.
std::string package_version(const fs::path& package) {
  constexpr std::string_view kKey = "VERSION = \"";
  std::ifstream file(package / "_build.py");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kKey))
      return line.substr(kKey.size(), line.rfind('"') - kKey.size());
  return "unknown";
}

}  // namespace

std::optional<TorchPackage> find_torch_package() {
  std::error_code error;
  const fs::path python = interpreter();
  if (!fs::exists(python, error))
    return std::nullopt;
  const std::string found = output_of({python.string(), "-c", kFind});
  const size_t end = found.find('\n');
  if (end == 0 || end == found.npos)
    return std::nullopt;
  const fs::path package = found.substr(0, end);
  const fs::path program = package / "bin" / "seqconv";
  if (!fs::is_regular_file(program, error))
    fail(
        "seqconv-torch in ",
        package.string(),
        " has the operators alone: install it without SEQCONV_OPS_ONLY to train");
  const fs::path torch = found.substr(end + 1, found.size() - end - 2);
  if (torch.empty())
    fail(
        "seqconv-torch in ",
        package.string(),
        " needs torch, but ",
        python.string(),
        " finds none");
  return TorchPackage{fs::canonical(program), torch, package_version(package)};
}

void become_torch_package(const std::string& missing) {
  const std::optional<TorchPackage> package = find_torch_package();
  if (!package || package->program.parent_path() == program_folder())
    fail(missing);
  if (package->version != SEQCONV_VERSION)
    fail(
        "this is seqconv ",
        SEQCONV_VERSION,
        ", but ",
        package->program.parent_path().parent_path().string(),
        " is of seqconv-torch ",
        package->version,
        "; install both of one version");
  ::setenv(kTorch, package->torch.c_str(), 0);
  std::vector<std::string> command = typed_command_line();
  std::vector<char*> arguments;
  for (std::string& argument : command)
    arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  ::execv(package->program.c_str(), arguments.data());
  fail("cannot start ", package->program.string(), ": ", std::strerror(errno));
}

}  // namespace seqconv::internal::cli
