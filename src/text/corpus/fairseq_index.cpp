#include "text/corpus/fairseq_index.h"

#include <bit>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

static_assert(
    std::endian::native == std::endian::little,
    "the files are little-endian and mapped as they are");

using namespace std::string_view_literals;
constexpr auto kMappedMagic = "MMIDIDX\0\0"sv;
constexpr auto kCachedMagic = "TNTIDX\0\0"sv;
constexpr auto kHuffmanMagic = "HUFFIDX\0"sv;

/// Reads an index from its beginning on.
class IndexFile {
 public:
  explicit IndexFile(const fs::path& path) : file_(path) {}

  std::string name() const { return file_.path().string(); }
  uint64_t size() const { return file_.bytes().size(); }
  uint64_t position() const { return position_; }

  bool begins_with(std::string_view magic) const {
    return size() >= magic.size() &&
        std::memcmp(file_.bytes().data(), magic.data(), magic.size()) == 0;
  }
  void skip(std::string_view magic) { position_ += magic.size(); }

  /// The next field of the header.
  template <class T>
  uint64_t next() {
    SEQCONV_CHECK(
        sizeof(T) <= size() - position_,
        name(),
        ": the index breaks off in its header, after ",
        size(),
        " bytes");
    const T value = read<T>(position_, 0);
    position_ += sizeof(T);
    return value;
  }

  /// Entry `index` of a table of T that begins at `start` and lies within the
  /// file. The tables stand anywhere, also where a T could not be mapped.
  template <class T>
  T read(uint64_t start, uint64_t index) const {
    T value;
    std::memcpy(&value, file_.bytes().data() + start + index * sizeof(T), sizeof(T));
    return value;
  }

  /// Error unless the tables fill the rest of the file.
  void check_size(bool bounded, uint64_t tables, uint64_t sentences) const {
    SEQCONV_CHECK(
        bounded && tables == size() - position_,
        name(),
        ": announces ",
        sentences,
        " sentences, which does not fit its ",
        size(),
        " bytes (truncated or damaged)");
  }

 private:
  MappedFile file_;
  uint64_t position_ = 0;
};

void check_version(IndexFile& file) {
  const uint64_t version = file.next<uint64_t>();
  SEQCONV_CHECK(
      version == 1,
      file.name(),
      ": an index of version 1 was wanted, but it has version ",
      version);
}

IdKind check_kind(const std::string& name, uint64_t code) {
  SEQCONV_CHECK(
      code != 6 && code != 7,
      name,
      ": ids were wanted, but the data are floating-point numbers (code ",
      code,
      ")");
  SEQCONV_CHECK(
      code >= 1 && code <= 10,
      name,
      ": the kind of numbers must have a code from 1 to 10, but got ",
      code);
  return static_cast<IdKind>(code);
}

/// "mmap": the sentences' lengths, then their places in bytes.
class MappedIndex : public FairseqIndex {
 public:
  explicit MappedIndex(IndexFile file) : file_(std::move(file)) {
    file_.skip(kMappedMagic);
    check_version(file_);
    kind_ = check_kind(file_.name(), file_.next<uint8_t>());
    sentences_ = file_.next<uint64_t>();
    // Bounds first, so that the product cannot overflow.
    file_.check_size(sentences_ < file_.size(), 12 * sentences_, sentences_);
  }

  int64_t size() const override { return static_cast<int64_t>(sentences_); }
  int64_t shift() const override { return 0; }
  IdKind kind() const override { return kind_; }

  SentencePlace place(int64_t index) const override {
    const auto at = static_cast<uint64_t>(index);
    const uint64_t lengths = file_.position();
    const auto byte = file_.read<int64_t>(lengths + 4 * sentences_, at);
    SEQCONV_CHECK(
        byte % width(kind_) == 0,
        file_.name(),
        ": sentence ",
        index + 1,
        " begins at byte ",
        byte,
        ", which is not a multiple of the ",
        width(kind_),
        " bytes of an id (damaged)");
    return {byte / width(kind_), file_.read<int32_t>(lengths, at)};
  }

 private:
  IndexFile file_;
  IdKind kind_{};
  uint64_t sentences_ = 0;
};

/// "lazy" and "cached": tensors of any number of dimensions, of which sentences
/// have one; their sizes, their places in numbers, and which sizes are whose.
class CachedIndex : public FairseqIndex {
 public:
  explicit CachedIndex(IndexFile file) : file_(std::move(file)) {
    file_.skip(kCachedMagic);
    check_version(file_);
    kind_ = check_kind(file_.name(), file_.next<uint64_t>());
    const uint64_t bytes = file_.next<uint64_t>();
    SEQCONV_CHECK(
        bytes == static_cast<uint64_t>(width(kind_)),
        file_.name(),
        ": ids of ",
        width(kind_),
        " bytes were wanted, as their kind says, but got ",
        bytes);
    sentences_ = file_.next<uint64_t>();
    sizes_ = file_.next<uint64_t>();
    // Bounds first, so that the sum cannot overflow.
    file_.check_size(
        sentences_ < file_.size() && sizes_ < file_.size(),
        8 * (2 * (sentences_ + 1) + sizes_),
        sentences_);
  }

  int64_t size() const override { return static_cast<int64_t>(sentences_); }
  // Their writer counts from one, as the Lua programs before it did.
  int64_t shift() const override { return 1; }
  IdKind kind() const override { return kind_; }

  SentencePlace place(int64_t index) const override {
    const auto at = static_cast<uint64_t>(index);
    const uint64_t dimensions = file_.position();
    const uint64_t places = dimensions + 8 * (sentences_ + 1);
    const auto first = file_.read<int64_t>(dimensions, at);
    const auto last = file_.read<int64_t>(dimensions, at + 1);
    const bool known = first >= 0 && first < static_cast<int64_t>(sizes_);
    SEQCONV_CHECK(
        known && last == first + 1,
        file_.name(),
        ": sentence ",
        index + 1,
        " must have one dimension, but its sizes go from entry ",
        first,
        " to ",
        last,
        " of ",
        sizes_);
    const auto begin = file_.read<int64_t>(places, at);
    const auto end = file_.read<int64_t>(places, at + 1);
    const auto count =
        file_.read<int64_t>(places + 8 * (sentences_ + 1), static_cast<uint64_t>(first));
    SEQCONV_CHECK(
        begin >= 0 && count >= 0 && end >= begin && end - begin == count,
        file_.name(),
        ": sentence ",
        index + 1,
        " goes from id ",
        begin,
        " to ",
        end,
        ", but has ",
        count,
        " ids (damaged)");
    return {begin, count};
  }

 private:
  IndexFile file_;
  IdKind kind_{};
  uint64_t sentences_ = 0;
  uint64_t sizes_ = 0;
};

}  // namespace

int64_t width(IdKind kind) {
  switch (kind) {
    case IdKind::kUInt8:
    case IdKind::kInt8:
      return 1;
    case IdKind::kInt16:
    case IdKind::kUInt16:
      return 2;
    case IdKind::kInt32:
    case IdKind::kUInt32:
      return 4;
    case IdKind::kInt64:
    case IdKind::kUInt64:
      return 8;
  }
  fail("unknown kind of ids ", static_cast<int>(kind));
}

std::unique_ptr<const FairseqIndex> open_fairseq_index(const fs::path& path) {
  IndexFile file(path);
  if (file.begins_with(kMappedMagic))
    return std::make_unique<MappedIndex>(std::move(file));
  if (file.begins_with(kCachedMagic))
    return std::make_unique<CachedIndex>(std::move(file));
  fail(
      path.string(),
      ": an index of fairseq's binarised data was wanted (mmap, lazy or cached), but ",
      file.begins_with(kHuffmanMagic) ? "this one is Huffman-coded"
                                      : "its first bytes are no such one's");
}

}  // namespace seqconv::internal
