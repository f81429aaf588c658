#include "model/model_writing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "model/descriptions_in_use.h"
#include "model/model_checkpoints.h"
#include "model/model_description.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// Held on a folder, which needs no file for it, while a model is written
/// there: of two at once each would take the other's parameters for its own.
/// It holds nothing if the file system has no locks.
class WritingLock {
 public:
  explicit WritingLock(const fs::path& folder)
      : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0 || ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
      return;
    ::close(fd_);
    fail(
        "the folder '",
        folder.string(),
        "' is in use: another process is writing a model into it; wait for it, or choose another "
        "folder");
  }
  WritingLock(const WritingLock&) = delete;
  WritingLock& operator=(const WritingLock&) = delete;
  ~WritingLock() {
    if (fd_ >= 0)
      ::close(fd_);
  }

 private:
  int fd_;
};

}  // namespace

std::vector<fs::path> description_files(const ModelFiles& model) {
  std::vector<fs::path> files = {model.folder / "config.json"};
  const Json none = Json::object();
  const auto table = [&none](const Json& in, const char* key) -> const Json& {
    const auto found = in.find(key);
    return found != in.end() && found->is_object() ? *found : none;
  };
  const Json& text = table(model.config, "text");
  for (const char* side : {"source", "target", "side"})
    for (const char* key : {"dictionary", "model"})
      if (const Json name = table(text, side).value(key, Json()); name.is_string())
        files.push_back(model.folder / fs::path(name.get<std::string>()).filename());
  return files;
}

void DescriptionsInUse::add(const ModelFiles& model) {
  for (const fs::path& file : description_files(model))
    stamps_.add(file);
}

void DescriptionsInUse::check() const {
  if (const auto file = stamps_.changed())
    fail(
        "'",
        file->string(),
        "' was replaced or changed while the model was being opened: open it again");
}

void write_model_folder(
    const fs::path& folder,
    const std::function<void(const fs::path&)>& write_parameters,
    const std::function<void()>& describe) {
  check_own_folder(folder);
  create_folder(folder);
  const WritingLock lock(folder);
  // Left by a process that was killed: they go even if this one fails too.
  remove_unfinished_files(
      folder, [](const UnfinishedFile& file) { return !process_lives(file.process); });
  // Behind a link, as an AtomicFile has it.
  const fs::path file = behind_links(folder / "model.safetensors");
  const fs::path written = concat(file.string(), ".new");
  std::error_code error;
  try {
    write_parameters(written);
  } catch (...) {
    fs::remove(written, error);
    throw;
  }
  write_file_atomically(folder / "config.json", unfinished_config());
  fs::rename(written, file, error);
  SEQCONV_CHECK(!error, "cannot write '", file.string(), "': ", error.message());
  fs::remove(folder / kLastParameters, error);  // of the model that was there
  describe();
}

}  // namespace seqconv::internal
