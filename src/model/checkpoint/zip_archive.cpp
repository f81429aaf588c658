#include "model/checkpoint/zip_archive.h"

#include <algorithm>
#include <cstring>

#include "base/crc32.h"
#include "base/error.h"
#include "model/checkpoint/zip_format.h"

namespace seqconv::internal {

/// What the directory says of a file.
struct ZipArchive::Entry {
  uint64_t size = 0;
  uint64_t stored_size = 0;
  uint64_t offset = 0;  ///< of the file's own header
  uint16_t method = 0;
  uint32_t sum = 0;
};

bool ZipArchive::begins(std::span<const std::byte> bytes) {
  uint32_t signature = 0;
  if (bytes.size() < sizeof signature)
    return false;
  std::memcpy(&signature, bytes.data(), sizeof signature);
  return signature == zip::kLocalHeader;
}

std::span<const std::byte> ZipArchive::slice(
    uint64_t offset, uint64_t size, std::string_view what) const {
  SEQCONV_CHECK(
      offset <= bytes_.size() && size <= bytes_.size() - offset,
      where_,
      ": the archive is cut off or damaged: ",
      what,
      " must have ",
      size,
      " bytes at ",
      offset,
      ", but the file has ",
      bytes_.size());
  return bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

template <class T>
T ZipArchive::number(uint64_t offset) const {
  T value;
  std::memcpy(&value, slice(offset, sizeof value, "a header").data(), sizeof value);
  return value;
}

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {
  const uint64_t end = find_end();
  uint64_t entries = number<uint16_t>(end + 10);
  uint64_t size = number<uint32_t>(end + 12);
  uint64_t offset = number<uint32_t>(end + 16);
  if (end >= zip::kLocator64Size &&
      number<uint32_t>(end - zip::kLocator64Size) == zip::kLocator64) {
    const auto end64 = number<uint64_t>(end - zip::kLocator64Size + 8);
    slice(end64, zip::kEnd64Size, "the end record");
    SEQCONV_CHECK(
        number<uint32_t>(end64) == zip::kEndRecord64,
        where_,
        ": the archive is damaged: its zip64 end record is not where it says");
    entries = number<uint64_t>(end64 + 32);
    size = number<uint64_t>(end64 + 40);
    offset = number<uint64_t>(end64 + 48);
  }
  slice(offset, size, "the directory");
  read_directory(offset, offset + size, entries);
}

/// The end record is the last thing, but for a comment.
uint64_t ZipArchive::find_end() const {
  if (bytes_.size() >= zip::kEndSize) {
    const size_t last = bytes_.size() - zip::kEndSize;
    const size_t first = last - std::min(last, zip::kLongestComment);
    for (size_t at = last + 1; at-- > first;)
      if (number<uint32_t>(at) == zip::kEndRecord)
        return at;
  }
  fail(
      where_, ": the archive is cut off: it has no directory at its end (an incomplete download?)");
}

void ZipArchive::read_directory(uint64_t at, uint64_t end, uint64_t entries) {
  for (uint64_t i = 0; i < entries; ++i) {
    slice(at, zip::kDirectoryEntrySize, "a directory entry");
    SEQCONV_CHECK(
        number<uint32_t>(at) == zip::kDirectoryEntry && at < end,
        where_,
        ": the archive is damaged: its directory has ",
        i,
        " of ",
        entries,
        " entries");
    const auto name_size = number<uint16_t>(at + 28);
    const auto extra_size = number<uint16_t>(at + 30);
    const auto comment_size = number<uint16_t>(at + 32);
    const uint64_t extra = at + zip::kDirectoryEntrySize + name_size;
    const auto name = slice(at + zip::kDirectoryEntrySize, name_size, "a file's name");
    slice(extra, extra_size, "an extra field");
    add(read_entry(at, extra, extra + extra_size),
        {reinterpret_cast<const char*>(name.data()), name.size()});
    at = extra + extra_size + comment_size;
  }
}

/// Sizes that do not fit into the entry stand in an extra field, in this order.
ZipArchive::Entry ZipArchive::read_entry(uint64_t at, uint64_t extra, uint64_t extra_end) const {
  Entry entry{
      .size = number<uint32_t>(at + 24),
      .stored_size = number<uint32_t>(at + 20),
      .offset = number<uint32_t>(at + 42),
      .method = number<uint16_t>(at + 10),
      .sum = number<uint32_t>(at + 16)};
  while (extra + 4 <= extra_end) {
    const auto tag = number<uint16_t>(extra);
    uint64_t value = extra + 4;
    extra = std::min(value + number<uint16_t>(extra + 2), extra_end);
    if (tag != zip::kExtra64)
      continue;
    for (uint64_t* size : {&entry.size, &entry.stored_size, &entry.offset})
      if (*size == zip::kSeeExtra && value + 8 <= extra) {
        *size = number<uint64_t>(value);
        value += 8;
      }
  }
  return entry;
}

void ZipArchive::add(const Entry& entry, std::string_view name) {
  const std::string key(name);
  const std::string what = concat("'", key, "'");
  SEQCONV_CHECK(
      entry.method == 0 && entry.size == entry.stored_size,
      where_,
      ": ",
      what,
      " in the archive must be stored as it is, but it is compressed; PyTorch does not write such "
      "files");
  slice(entry.offset, zip::kLocalHeaderSize, what);
  SEQCONV_CHECK(
      number<uint32_t>(entry.offset) == zip::kLocalHeader,
      where_,
      ": the archive is damaged: ",
      what,
      " is not where the directory says");
  const uint64_t begin = entry.offset + zip::kLocalHeaderSize +
      number<uint16_t>(entry.offset + 26) + number<uint16_t>(entry.offset + 28);
  const bool added = files_.emplace(key, slice(begin, entry.size, what)).second;
  SEQCONV_CHECK(added, where_, ": the archive holds ", what, " twice");
  sums_[key] = entry.sum;
}

void ZipArchive::check(const std::string& name) const {
  SEQCONV_CHECK(
      files_.contains(name), where_, ": the archive must hold '", name, "', but does not");
  const uint32_t sum = crc32(files_.at(name));
  SEQCONV_CHECK(
      sum == sums_.at(name),
      where_,
      ": the archive is damaged: the sum of '",
      name,
      "' must be ",
      sums_.at(name),
      ", but is ",
      sum);
}

}  // namespace seqconv::internal
