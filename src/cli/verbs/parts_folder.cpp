#include "cli/verbs/parts_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "cli/verbs/job_files.h"

namespace seqconv::internal::verbs {
namespace fs = std::filesystem;
namespace {

std::string text_of(const Json& json) {
  // Messages may quote a file name that is not UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json read_record(const fs::path& file) {
  constexpr uintmax_t kMostBytes = uintmax_t{16} << 20;
  const uintmax_t size = fs::file_size(file);
  SEQCONV_CHECK(
      size <= kMostBytes,
      file.string(),
      ": a record of at most ",
      kMostBytes,
      " bytes was wanted, but it has ",
      size);
  return parse_json(read_file(file), file.string());
}

/// Waits for others that hold it. Where the file system has no locks there is
/// nothing to wait for.
class JoinLock {
 public:
  explicit JoinLock(const fs::path& file)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {}
  }
  JoinLock(const JoinLock&) = delete;
  JoinLock& operator=(const JoinLock&) = delete;
  ~JoinLock() {
    if (fd_ >= 0)
      ::close(fd_);
  }

 private:
  int fd_;
};

/// What two jobs differ in: "search.beam (5, now 4)".
std::string differences(const Json& begun, const Json& now) {
  const Json before = begun.flatten();
  const Json after = now.flatten();
  std::string found;
  const auto add = [&](const std::string& key) {
    const auto value = [&](const Json& flat) {
      return flat.contains(key) ? flat[key].dump() : "missing";
    };
    if (value(before) == value(after))
      return;
    std::string dotted = key.substr(1);
    for (char& c : dotted)
      c = c == '/' ? '.' : c;
    found += concat(
        found.empty() ? "" : "; ",
        dotted,
        " was ",
        shorten(value(before)),
        " and is ",
        shorten(value(after)));
  };
  for (const auto& [key, value] : before.items())
    add(key);
  for (const auto& [key, value] : after.items())
    if (!before.contains(key))
      add(key);
  return found;
}

/// A new file with this content, beside `file` and under a name that no process
/// of any machine has.
fs::path write_beside(const fs::path& file, std::string_view content) {
  std::string name = concat(file.string(), kNewRecord, "XXXXXX");
  const int fd = ::mkstemp(name.data());
  const bool written = fd >= 0 && ::fchmod(fd, 0644) == 0 &&
      ::write(fd, content.data(), content.size()) == std::ssize(content) &&
      (::fsync(fd) == 0 || errno == EINVAL);
  const std::string why = std::strerror(errno);
  if (fd >= 0)
    ::close(fd);
  if (fd >= 0 && !written)
    ::unlink(name.c_str());
  SEQCONV_CHECK(written, "cannot write '", file.string(), "': ", why);
  return name;
}

/// Writes a file that is not there; false where it is there by then. An
/// AtomicFile would take another machine's unfinished one for left over.
bool write_new_file(const fs::path& file, std::string_view content) {
  const fs::path own = write_beside(file, content);
  bool linked = ::link(own.c_str(), file.c_str()) == 0;
  // Some file systems have no links. There the last one to come wins: records
  // tell which job they are of.
  if (!linked && errno != EEXIST)
    linked = ::rename(own.c_str(), file.c_str()) == 0;
  const int error = linked ? EEXIST : errno;
  const std::string why = std::strerror(error);
  ::unlink(own.c_str());
  SEQCONV_CHECK(error == EEXIST, "cannot write '", file.string(), "': ", why);
  return linked;
}

/// Copies a part, which should have so many bytes.
void append(const fs::path& part, int64_t size, AtomicFile& file) {
  std::ifstream in(part, std::ios::binary);
  std::vector<char> bytes(size_t{1} << 20);
  int64_t copied = 0;
  while (in.read(bytes.data(), std::ssize(bytes)), in.gcount() > 0) {
    file.write(bytes.data(), static_cast<size_t>(in.gcount()));
    copied += in.gcount();
  }
  SEQCONV_CHECK(
      copied == size,
      "'",
      part.string(),
      "' should have ",
      size,
      " bytes by its record, but ",
      copied,
      " can be read: delete the record, ",
      part.stem().string(),
      ".json beside it, to translate this part anew");
}

}  // namespace

PartsFolder::PartsFolder(const fs::path& output, InputPart part)
    : output_(output), folder_(concat(behind_links(output).string(), ".parts")), part_(part) {
  check_place();
  check_output();
}

void PartsFolder::check_output() const {
  if (fs::exists(folder_ / kJobRecord) || !fs::exists(output_))
    return;
  SEQCONV_CHECK(
      fs::is_regular_file(output_),
      "--output needs the name of a new file, but '",
      output_.string(),
      fs::is_directory(output_)
          ? "' is a folder"
          : "' is a device or a pipe; without --output translations go to standard output");
  fail(
      "the output '",
      output_.string(),
      "' is there already; to translate anew, delete it or choose another --output");
}

void PartsFolder::check_place() const {
  std::error_code error;
  const fs::file_type kind = fs::symlink_status(folder_, error).type();
  SEQCONV_CHECK(
      kind != fs::file_type::symlink,
      "the parts of the output need a folder of their own, but '",
      folder_.string(),
      "' is a symbolic link: move it away, or choose another --output");
  if (kind != fs::file_type::directory || fs::exists(folder_ / kJobRecord))
    return;
  const std::string other = foreign_entry(folder_, /*begun=*/false);
  SEQCONV_CHECK(
      other.empty(),
      "the parts of the output need the folder '",
      folder_.string(),
      "', but that is there with '",
      other,
      "' in it, which is no file of this job: move it away, or choose another --output");
}

void PartsFolder::enter(const Json& job) {
  check_place();
  std::error_code error;
  fs::create_directory(folder_, error);
  SEQCONV_CHECK(
      !error,
      "cannot create the folder '",
      folder_.string(),
      "' for the parts of the output: ",
      error.message());
  const fs::path file = folder_ / kJobRecord;
  const std::string content = text_of(job);
  job_ = checksum_text(checksum(content));
  if (!fs::exists(file) && write_new_file(file, content)) {
    // Another process may have joined the parts a moment ago.
    if (fs::exists(output_))
      remove_job(folder_, part_.count);
    return check_output();
  }
  check_job_files(folder_);
  const std::string other = foreign_entry(folder_, /*begun=*/true);
  const std::string over = other.empty()
      ? concat("delete the folder '", folder_.string(), "' to start over")
      : concat("choose another --output, as '", other, "' in the folder is no file of this job");
  Json begun;
  try {
    begun = read_record(file);
    SEQCONV_CHECK(begun.is_object(), file.string(), ": an object was wanted");
  } catch (const Error& error) {
    fail("the record of the job cannot be read; ", over, ": ", error.what());
  }
  const std::string found = differences(begun, parse_json(content, file.string()));
  SEQCONV_CHECK(
      found.empty(),
      "'",
      folder_.string(),
      "' holds a job that was begun otherwise: ",
      found,
      "; go on as it was begun, or ",
      over);
}

std::unique_ptr<FolderLock> PartsFolder::lock() const {
  return std::make_unique<FolderLock>(
      folder_,
      name(part_.index, ".lock"),
      concat("translating part ", part_.index, " of ", part_.count));
}

fs::path PartsFolder::name(int64_t part, const char* ending) const {
  return folder_ / concat(part, ending);
}

std::optional<PartProgress> PartsFolder::load() const {
  return load(part_.index);
}

bool PartsFolder::is_done() const {
  const auto progress = load();
  return progress && progress->done;
}

std::optional<PartProgress> PartsFolder::load(int64_t part) const {
  const fs::path file = name(part, ".json");
  if (!fs::exists(file))
    return std::nullopt;
  try {
    Json record = read_record(file);
    SEQCONV_CHECK(
        record.is_object() && record.contains("checksum"), file.string(), ": a record was wanted");
    const Json sum = record["checksum"];
    record.erase("checksum");
    const Json job = record["job"];
    SEQCONV_CHECK(
        sum == checksum_text(checksum(text_of(record))), file.string(), ": the checksum is wrong");
    SEQCONV_CHECK(job == job_, file.string(), ": it is of another job");
    record.erase("job");
    PartProgress progress;
    read_options(record, file.string(), progress);
    return progress;
  } catch (const Error& error) {
    log_warning(
        "part ", part, " has no record that counts and must be translated anew: ", error.what());
    return std::nullopt;
  }
}

void PartsFolder::save(const PartProgress& progress) const {
  // As it will be read, so that the checksums are of the same text.
  Json record = parse_json(text_of(write_options(progress)), "the record of a part");
  record["job"] = job_;
  record["checksum"] = checksum_text(checksum(text_of(record)));
  write_file_atomically(name(part_.index, ".json"), text_of(record));
}

JoinedParts PartsFolder::look() const {
  JoinedParts joined;
  PartProgress& total = joined.total;
  for (int64_t part = 1; part <= part_.count; ++part) {
    const auto progress = load(part);
    if (!progress || !progress->done) {
      ++joined.missing;
      continue;
    }
    total.lines = progress->lines;
    joined.bytes.push_back(progress->bytes);
    total.bytes += progress->bytes;
    total.replaced += progress->replaced;
    total.blank += progress->blank;
    total.cut += progress->cut;
    total.limits += progress->limits;
    total.failed += progress->failed;
  }
  return joined;
}

JoinedParts PartsFolder::join() const {
  check_job_files(folder_);
  const JoinLock lock(folder_ / kJoinLock);
  // Whoever held the lock before has seen this part done, and joined.
  if (!fs::exists(folder_ / kJobRecord)) {
    remove_empty_job(folder_);
    return {};
  }
  JoinedParts joined = look();
  if (joined.missing > 0)
    return joined;
  write_output(joined);
  joined.here = true;
  remove_job(folder_, part_.count);
  return joined;
}

void PartsFolder::write_output(const JoinedParts& joined) const {
  // One that is there is our own, of a process that died behind this function.
  if (fs::exists(output_)) {
    SEQCONV_CHECK(
        fs::is_regular_file(output_) &&
            static_cast<int64_t>(fs::file_size(output_)) == joined.total.bytes,
        "all parts are done, but '",
        output_.string(),
        "' has come meanwhile: move it away, and run any part again to join them");
    return;
  }
  AtomicFile file(output_);
  for (int64_t part = 1; part <= part_.count; ++part)
    append(name(part, ".out"), joined.bytes[static_cast<size_t>(part - 1)], file);
  file.commit();
}

}  // namespace seqconv::internal::verbs
