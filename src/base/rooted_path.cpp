#include "base/rooted_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

// Not blocking: a pipe without a writer would be waited for.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

template <class... Parts>
[[noreturn]] void fail_read(const fs::path& path, const Parts&... parts) {
  fail("cannot read '", path.string(), "': ", parts...);
}

/// A kind of file that is no ordinary one, in words.
const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode))
    return "a pipe";
  if (S_ISSOCK(mode))
    return "a socket";
  return "a device";
}

/// Error for what is no ordinary file, before it is opened: opening a device
/// can do something.
void check_kind(const fs::path& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode))
    fail_read(path, "a file was wanted, but it is a folder");
  if (!S_ISREG(info.st_mode))
    fail_read(path, "an ordinary file was wanted, but it is ", kind_of(info.st_mode));
}

/// A descriptor that is closed unless it is given away.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }
  int give() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Reads wait again, where the file is one that is waited for.
int blocking(OpenFile& file) {
  ::fcntl(file.get(), F_SETFL, O_RDONLY);
  return file.give();
}

/// Opens `path`, which messages call `named`.
int open_given(const fs::path& path, const fs::path& named, bool or_stream) {
  if (or_stream) {
    OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
      fail_read(named, std::strerror(errno));
    if (S_ISDIR(info.st_mode))
      check_kind(named, info);
    return file.give();
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    fail_read(named, std::strerror(errno));
  check_kind(named, info);
  OpenFile file(::open(path.c_str(), kOpenFlags));
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    fail_read(named, std::strerror(errno));
  check_kind(named, info);  // it may have been replaced
  return blocking(file);
}

/// The path without links, "." and ".."; Error for `named`, what it came of.
fs::path without_links(const fs::path& path, const fs::path& named) {
  std::error_code error, none;
  fs::path real = fs::canonical(path, error);
  if (!error)
    return real;
  if (error == std::errc::too_many_symbolic_link_levels)
    fail_read(named, "a file was wanted, but its links lead in a circle");
  if (error == std::errc::no_such_file_or_directory &&
      fs::is_symlink(fs::symlink_status(named, none)))
    fail_read(named, "a file was wanted, but it is a link that leads nowhere");
  fail_read(named, error.message());
}

/// The part of `file` below `root`; "" when it lies elsewhere.
fs::path below(const fs::path& root, const fs::path& file) {
  const auto [in_root, in_file] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  fs::path rest;
  if (in_root == root.end())
    for (auto part = in_file; part != file.end(); ++part)
      rest /= *part;
  return rest;
}

/// Opens a file below a folder whose parts were no links a moment ago: one that
/// has become a link since is not followed.
int open_below(const fs::path& root, const fs::path& name, const fs::path& path) {
  OpenFile folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto check = [&](bool good) {
    if (!good)
      fail_read(path, std::strerror(errno));
  };
  check(folder.get() >= 0);
  for (const fs::path& part : name.parent_path()) {
    folder = OpenFile(
        ::openat(folder.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    check(folder.get() >= 0);
  }
  const fs::path last = name.filename();
  struct stat info {};
  check(::fstatat(folder.get(), last.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0);
  check_kind(path, info);
  OpenFile file(::openat(folder.get(), last.c_str(), kOpenFlags | O_NOFOLLOW));
  check(file.get() >= 0 && ::fstat(file.get(), &info) == 0);
  check_kind(path, info);
  return blocking(file);
}

}  // namespace

std::string outward_name(const fs::path& name) {
  if (name.empty())
    return "it is empty";
  if (name.native().find('\0') != std::string::npos)
    return "it holds NUL";
  if (name.has_root_path())
    return "it begins with '/'";
  for (const fs::path& part : name)
    if (part == "..")
      return "it leads out by '..'";
  return {};
}

RootedPath operator/(const RootedPath& folder, const fs::path& name) {
  const std::string why = outward_name(name);
  SEQCONV_CHECK(
      why.empty(),
      "the name of a file inside '",
      folder.string(),
      "' was wanted, but got '",
      shorten(name.string()),
      "': ",
      why);
  RootedPath file = folder;
  file.name_ /= name;
  file.path_ /= name;
  return file;
}

int RootedPath::open(bool or_stream) const {
  if (path_.native().find('\0') != std::string::npos)
    fail("a path cannot hold NUL, but got '", path_.string(), "'");
  if (name_.empty())
    return open_given(path_, path_, or_stream);
  const fs::path root = without_links(root_.empty() ? "." : root_, path_);
  const fs::path file = without_links(root / name_, path_);
  const fs::path name = below(root, file);
  if (!name.empty())
    return open_below(root, name, path_);
  if (links_ == Links::kInside && file != root)
    fail_read(
        path_,
        "a file inside '",
        root_.string(),
        "' was wanted, but links lead out of it; follow_links (--follow-links) allows that");
  return open_given(file, path_, /*or_stream=*/false);
}

}  // namespace seqconv::internal
