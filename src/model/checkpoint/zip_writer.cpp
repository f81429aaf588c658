#include "model/checkpoint/zip_writer.h"

#include <algorithm>

#include "base/crc32.h"
#include "model/checkpoint/zip_format.h"

namespace seqconv::internal {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint16_t kVersion = 45;        // the first one with zip64
constexpr uint16_t kPadding = 0x4246;    // an extra field that means nothing
constexpr uint16_t kNewYear1980 = 0x21;  // dates are left out of archives
constexpr size_t kFieldHead = 4;

/// Little-endian numbers one after the other.
class Record {
 public:
  template <class T>
  Record& add(uint64_t value) {
    const T number = static_cast<T>(value);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Record& u16(uint64_t value) { return add<uint16_t>(value); }
  Record& u32(uint64_t value) { return add<uint32_t>(value); }
  Record& u64(uint64_t value) { return add<uint64_t>(value); }
  /// A 64-bit number's place in a 32-bit field.
  Record& capped(uint64_t value) { return u32(std::min<uint64_t>(value, zip::kSeeExtra)); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// The extra field of those numbers that do not fit into 32 bits.
std::string extra64(std::initializer_list<uint64_t> numbers) {
  Record body;
  for (const uint64_t number : numbers)
    if (number >= zip::kSeeExtra)
      body.u64(number);
  const std::string bytes = body.take();
  if (bytes.empty())
    return "";
  return Record().u16(zip::kExtra64).u16(bytes.size()).take() + bytes;
}

/// Method, time, date, sum and sizes stand in both kinds of header.
void add_common(Record& record, uint32_t sum, uint64_t size) {
  record.u16(0).u16(0).u16(0).u16(kNewYear1980).u32(sum);
  record.capped(size).capped(size);
}

}  // namespace

void ZipWriter::write(const std::string& bytes) {
  file_.write(bytes.data(), bytes.size());
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  const Entry entry{name, content.size(), position_, crc32(content)};
  std::string extra = extra64({entry.size, entry.size});
  const uint64_t begin =
      position_ + zip::kLocalHeaderSize + name.size() + extra.size() + kFieldHead;
  const uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra += Record().u16(kPadding).u16(padding).take();
  extra.append(padding, 'Z');
  Record header;
  header.u32(zip::kLocalHeader).u16(kVersion);
  add_common(header, entry.sum, entry.size);
  header.u16(name.size()).u16(extra.size());
  write(header.take() + name + extra);
  file_.write(content.data(), content.size());
  position_ += content.size();
  entries_.push_back(entry);
}

std::string ZipWriter::directory_entry(const Entry& entry) const {
  const std::string extra = extra64({entry.size, entry.size, entry.offset});
  Record record;
  record.u32(zip::kDirectoryEntry).u16(kVersion).u16(kVersion);
  add_common(record, entry.sum, entry.size);
  record.u16(entry.name.size()).u16(extra.size()).u16(0).u16(0).u16(0).u32(0);
  record.capped(entry.offset);
  return record.take() + entry.name + extra;
}

void ZipWriter::commit() {
  const uint64_t begin = position_;
  for (const Entry& entry : entries_)
    write(directory_entry(entry));
  const uint64_t size = position_ - begin;
  const uint64_t end64 = position_;
  const uint64_t count = entries_.size();
  Record end;
  if (count > 0xFFFF || end64 >= zip::kSeeExtra) {
    end.u32(zip::kEndRecord64).u64(zip::kEnd64Size - 12);
    end.u16(kVersion).u16(kVersion).u32(0).u32(0);
    end.u64(count).u64(count).u64(size).u64(begin);
    end.u32(zip::kLocator64).u32(0).u64(end64).u32(1);
  }
  const uint64_t shown = std::min<uint64_t>(count, 0xFFFF);
  end.u32(zip::kEndRecord).u16(0).u16(0).u16(shown).u16(shown);
  end.capped(size).capped(begin).u16(0);
  write(end.take());
  file_.commit();
}

}  // namespace seqconv::internal
