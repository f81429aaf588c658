#include "train/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "base/crc32.h"
#include "base/files.h"
#include "base/options.h"

namespace seqconv::internal {
namespace {

/// How protocol buffers write a field.
enum class Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(0x80 | (value & 0x7F));
  return bytes + static_cast<char>(value);
}

std::string tag(uint64_t field, Wire wire) {
  return varint(field << 3 | static_cast<uint64_t>(wire));
}

std::string bytes_field(uint64_t field, std::string_view bytes) {
  return tag(field, Wire::kBytes).append(varint(bytes.size())).append(bytes);
}

std::string integer_field(uint64_t field, int64_t value) {
  return tag(field, Wire::kVarint) + varint(static_cast<uint64_t>(value));
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t sum = crc32c(std::as_bytes(std::span(bytes)));
  return std::rotr(sum, 15) + 0xA282EAD8u;
}

/// Event.wall_time.
std::string time_field(double time) {
  return tag(1, Wire::kFixed64) + little_endian(time);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0')
    return "unknown";
  return name.data();
}

constexpr std::string_view kPrefixOfEvents = "events.out.tfevents.";

/// The time that the last file of a folder has in its name, in seconds; nothing
/// where there is none.
std::optional<int64_t> last_time(const std::filesystem::path& folder) {
  std::optional<int64_t> last;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefixOfEvents))
      continue;
    int64_t time = 0;
    std::from_chars(name.data() + kPrefixOfEvents.size(), name.data() + name.size(), time);
    last = std::max(last.value_or(0), time);
  }
  return last;
}

bool is_place_key(const std::string& key) {
  return key == "kind" || key == "epoch" || key == "update";
}

}  // namespace

std::string framed_record(std::string_view record) {
  const std::string length = little_endian(static_cast<uint64_t>(record.size()));
  return length + little_endian(masked_crc(length)) + std::string(record) +
      little_endian(masked_crc(record));
}

std::string version_event(double time) {
  return time_field(time) + bytes_field(3, "brain.Event:2");
}

std::string session_start_event(double time, int64_t step) {
  // Event.session_log with SessionLog.status = START.
  return time_field(time) + integer_field(2, step) + bytes_field(7, integer_field(1, 1));
}

std::string scalars_event(double time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [name, value] : scalars)
    // Summary.value with Value.tag and Value.simple_value.
    summary += bytes_field(1, bytes_field(1, name) + tag(2, Wire::kFixed32) + little_endian(value));
  return time_field(time) + integer_field(2, step) + bytes_field(5, summary);
}

Scalars scalars_of(const Json& record) {
  Scalars scalars;
  const std::string kind = record.value("kind", "");
  if (kind != "train" && kind != "validation")
    return scalars;
  for (const auto& [key, value] : record.items())
    if (value.is_number() && !is_place_key(key) && std::isfinite(value.get<double>()))
      scalars.emplace_back(concat(kind, "/", key), static_cast<float>(value.get<double>()));
  return scalars;
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t first) {
  create_folder(folder);
  const double now = seconds_now();
  const std::optional<int64_t> before = last_time(folder);
  // The viewer reads a folder's files in the order of their names.
  const int64_t time = std::max(static_cast<int64_t>(now), before ? *before + 1 : 0);
  for (int64_t number = 0; fd_ < 0; ++number) {
    path_ = folder / concat(kPrefixOfEvents, time, ".", host_name(), ".", ::getpid(), ".", number);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    SEQCONV_CHECK(
        fd_ >= 0 || errno == EEXIST, "cannot write '", path_.string(), "': ", std::strerror(errno));
  }
  append(version_event(now));
  if (before)
    append(session_start_event(now, first));
}

EventFile::~EventFile() {
  ::close(fd_);
}

void EventFile::write(const Json& record) {
  if (const Scalars scalars = scalars_of(record); !scalars.empty())
    append(scalars_event(seconds_now(), record.value("update", int64_t{0}), scalars));
}

void EventFile::append(const std::string& event) {
  const std::string frame = framed_record(event);
  const ssize_t written = ::write(fd_, frame.data(), frame.size());
  SEQCONV_CHECK(
      written == static_cast<ssize_t>(frame.size()),
      "cannot write '",
      path_.string(),
      "': ",
      written < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace seqconv::internal
