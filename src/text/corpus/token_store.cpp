#include "text/corpus/token_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace seqconv::internal {
namespace {

static_assert(
    std::endian::native == std::endian::little,
    "token stores are little-endian and mapped as they are");

constexpr char kMagic[8] = "SEQCTOK";
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t zero;
  int64_t sequences;
  int64_t ids;
};
static_assert(sizeof(Header) == 32);

constexpr size_t padded(size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

/// Reads the header; Error unless the file has exactly the size it announces.
Header check_header(std::span<const std::byte> bytes, const std::string& name) {
  Header header{};
  SEQCONV_CHECK(
      bytes.size() >= sizeof header, name, ": not a token store, only ", bytes.size(), " bytes");
  std::memcpy(&header, bytes.data(), sizeof header);
  SEQCONV_CHECK(
      std::equal(kMagic, kMagic + sizeof kMagic, header.magic),
      name,
      ": not a token store (its first bytes differ)");
  SEQCONV_CHECK(
      header.version == kVersion && header.zero == 0,
      name,
      ": a token store of version ",
      kVersion,
      " was wanted, but it has version ",
      header.version);
  // Bounds first, so that the sum below cannot overflow.
  const auto limit = static_cast<int64_t>(bytes.size());
  const bool bounded =
      header.sequences >= 0 && header.sequences < limit && header.ids >= 0 && header.ids < limit;
  const size_t wanted = bounded ? sizeof header + padded(static_cast<size_t>(header.ids) * 4) +
          (static_cast<size_t>(header.sequences) + 1) * 8
                                : 0;
  SEQCONV_CHECK(
      bounded && wanted == bytes.size(),
      name,
      ": announces ",
      header.sequences,
      " sequences and ",
      header.ids,
      " ids, which does not fit its ",
      bytes.size(),
      " bytes (truncated or damaged)");
  return header;
}

}  // namespace

TokenStore::TokenStore(const std::filesystem::path& path) : file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  const Header header = check_header(bytes, path.string());
  const auto ids = static_cast<size_t>(header.ids);
  const std::byte* data = bytes.data() + sizeof header;
  ids_ = {reinterpret_cast<const int32_t*>(data), ids};
  offsets_ = {
      reinterpret_cast<const int64_t*>(data + padded(ids * 4)),
      static_cast<size_t>(header.sequences) + 1};
  SEQCONV_CHECK(
      offsets_.front() == 0 && offsets_.back() == header.ids,
      path.string(),
      ": the offsets go from ",
      offsets_.front(),
      " to ",
      offsets_.back(),
      ", but 0 to ",
      header.ids,
      " was wanted (damaged)");
}

int64_t TokenStore::size() const {
  return static_cast<int64_t>(offsets_.size()) - 1;
}

std::pair<int64_t, int64_t> TokenStore::range(int64_t index) const {
  SEQCONV_CHECK(
      index >= 0 && index < size(),
      file_.path().string(),
      ": sequence ",
      index,
      " was asked for, but there are ",
      size());
  const int64_t begin = offsets_[static_cast<size_t>(index)];
  const int64_t end = offsets_[static_cast<size_t>(index) + 1];
  SEQCONV_CHECK(
      0 <= begin && begin <= end && end <= static_cast<int64_t>(ids_.size()),
      file_.path().string(),
      ": sequence ",
      index,
      " goes from id ",
      begin,
      " to ",
      end,
      " of ",
      ids_.size(),
      " (damaged)");
  return {begin, end};
}

std::span<const int32_t> TokenStore::tokens(int64_t index) const {
  const auto [begin, end] = range(index);
  return ids_.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

int64_t TokenStore::length(int64_t index) const {
  const auto [begin, end] = range(index);
  return end - begin;
}

struct TokenStoreWriter::Impl {
  explicit Impl(const std::filesystem::path& path)
      : file(path), offsets(path.string() + ".offsets") {}

  /// Collects small pieces before they go to the system.
  static void write(AtomicFile& to, std::string& buffer, const void* data, size_t size) {
    constexpr size_t kBuffer = 1 << 20;
    if (buffer.size() + size > kBuffer) {
      to.write(buffer.data(), buffer.size());
      buffer.clear();
    }
    if (size > kBuffer)
      to.write(data, size);
    else
      buffer.append(static_cast<const char*>(data), size);
  }

  AtomicFile file;
  AtomicFile offsets;  // never takes its name
  std::string file_buffer;
  std::string offset_buffer;
  int64_t sequences = 0;
  int64_t ids = 0;
  bool prepared = false;
};

TokenStoreWriter::TokenStoreWriter(const std::filesystem::path& path)
    : impl_(std::make_unique<Impl>(path)) {
  const Header empty{};
  impl_->file.write(&empty, sizeof empty);
}

TokenStoreWriter::~TokenStoreWriter() = default;

void TokenStoreWriter::append(std::span<const int32_t> ids) {
  SEQCONV_CHECK(!impl_->prepared, "a finished token store cannot grow");
  Impl& to = *impl_;
  Impl::write(to.offsets, to.offset_buffer, &to.ids, sizeof to.ids);
  ++to.sequences;
  extend(ids);
}

void TokenStoreWriter::extend(std::span<const int32_t> ids) {
  SEQCONV_CHECK(!impl_->prepared, "a finished token store cannot grow");
  Impl& to = *impl_;
  SEQCONV_CHECK(to.sequences > 0, "a token store without sequences has none to lengthen");
  Impl::write(to.file, to.file_buffer, ids.data(), ids.size_bytes());
  to.ids += static_cast<int64_t>(ids.size());
}

void TokenStoreWriter::prepare() {
  Impl& to = *impl_;
  if (std::exchange(to.prepared, true))
    return;
  const size_t bytes = static_cast<size_t>(to.ids) * 4;
  const char zeros[8] = {};
  Impl::write(to.file, to.file_buffer, zeros, padded(bytes) - bytes);
  to.file.write(to.file_buffer.data(), to.file_buffer.size());
  to.offsets.write(to.offset_buffer.data(), to.offset_buffer.size());
  {
    const MappedFile offsets(to.offsets.temporary());
    to.file.write(offsets.bytes().data(), offsets.bytes().size());
  }
  to.file.write(&to.ids, sizeof to.ids);
  Header header{{}, kVersion, 0, to.sequences, to.ids};
  std::copy(kMagic, kMagic + sizeof kMagic, header.magic);
  to.file.write_at(0, &header, sizeof header);
  to.file.flush();
}

void TokenStoreWriter::finish() {
  prepare();
  impl_->file.commit();
}

}  // namespace seqconv::internal
