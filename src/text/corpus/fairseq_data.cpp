#include "text/corpus/fairseq_data.h"

#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "text/corpus/fairseq_index.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

template <class T>
int64_t read_number(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * int64_t{sizeof(T)}, sizeof(T));
  if constexpr (std::is_same_v<T, uint64_t>)
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

int64_t read_number(IdKind kind, const std::byte* data, int64_t index) {
  switch (kind) {
    case IdKind::kUInt8:
      return read_number<uint8_t>(data, index);
    case IdKind::kInt8:
      return read_number<int8_t>(data, index);
    case IdKind::kInt16:
      return read_number<int16_t>(data, index);
    case IdKind::kInt32:
      return read_number<int32_t>(data, index);
    case IdKind::kInt64:
      return read_number<int64_t>(data, index);
    case IdKind::kUInt16:
      return read_number<uint16_t>(data, index);
    case IdKind::kUInt32:
      return read_number<uint32_t>(data, index);
    case IdKind::kUInt64:
      return read_number<uint64_t>(data, index);
  }
  fail("unknown kind of ids ", static_cast<int>(kind));
}

class FairseqData : public TokenSource {
 public:
  FairseqData(const FairseqFiles& files, int64_t vocabulary)
      : index_(open_fairseq_index(files.index)), file_(files.data), vocabulary_(vocabulary) {}

  int64_t size() const override { return index_->size(); }

  std::span<const int32_t> tokens(int64_t index) const override {
    const SentencePlace place = checked(index);
    buffer_.clear();
    for (int64_t i = 0; i < place.count; ++i)
      buffer_.push_back(checked_id(index, number(place.begin + i)));
    return buffer_;
  }

  int64_t length(int64_t index) const override { return checked(index).count; }

 private:
  /// Where the sentence stands without its </s>.
  SentencePlace checked(int64_t index) const;
  int32_t checked_id(int64_t index, int64_t stored) const;

  /// What the data file holds at a place within it.
  int64_t number(int64_t position) const {
    return read_number(index_->kind(), file_.bytes().data(), position);
  }

  std::unique_ptr<const FairseqIndex> index_;
  MappedFile file_;
  int64_t vocabulary_;
  mutable std::vector<int32_t> buffer_;  // what tokens() gave last
};

SentencePlace FairseqData::checked(int64_t index) const {
  SEQCONV_CHECK(
      index >= 0 && index < size(),
      file_.path().string(),
      ": sentence ",
      index + 1,
      " was asked for, but there are ",
      size());
  SentencePlace place = index_->place(index);
  const auto numbers = static_cast<int64_t>(file_.bytes().size()) / width(index_->kind());
  SEQCONV_CHECK(
      place.begin >= 0 && place.count >= 0 && place.begin <= numbers &&
          place.count <= numbers - place.begin,
      file_.path().string(),
      ": sentence ",
      index + 1,
      " has ",
      place.count,
      " ids from id ",
      place.begin,
      " on, but the file holds ",
      numbers,
      " (truncated, or the index of other data)");
  if (place.count > 0 && number(place.begin + place.count - 1) == kEndId + index_->shift())
    --place.count;
  return place;
}

int32_t FairseqData::checked_id(int64_t index, int64_t stored) const {
  // The lowest number minus one would overflow; it is out of range anyway.
  const int64_t id = stored < 0 ? stored : stored - index_->shift();
  SEQCONV_CHECK(
      id >= 0 && id < vocabulary_,
      file_.path().string(),
      ": wrong dictionary for this data: sentence ",
      index + 1,
      " holds the id ",
      id,
      ", but the dictionary has ids from 0 to ",
      vocabulary_ - 1);
  SEQCONV_CHECK(
      id != kPadId,
      file_.path().string(),
      ": sentence ",
      index + 1,
      " holds <pad> (",
      id,
      "), which only fills up batches");
  return static_cast<int32_t>(id);
}

void check_there(const fs::path& file, const fs::path& partner) {
  std::error_code ignored;
  SEQCONV_CHECK(
      fs::exists(file, ignored),
      "fairseq's binarised data are two files, but '",
      file.string(),
      "' is not there beside '",
      partner.filename().string(),
      "'");
}

}  // namespace

bool is_fairseq_data(const fs::path& file) {
  return file.extension() == ".bin" || file.extension() == ".idx";
}

bool holds_ids(const TextSource& source) {
  return source.format == TextFormat::kText && is_fairseq_data(source.file);
}

FairseqFiles fairseq_files(const fs::path& file) {
  SEQCONV_CHECK(
      is_fairseq_data(file),
      "fairseq's binarised data have names that end in .bin or .idx, but got '",
      file.string(),
      "'");
  fs::path index = file;
  fs::path data = file;
  return {index.replace_extension(".idx"), data.replace_extension(".bin")};
}

std::shared_ptr<const TokenSource> open_fairseq_data(const fs::path& file, int64_t vocabulary) {
  const FairseqFiles files = fairseq_files(file);
  check_there(files.index, files.data);
  check_there(files.data, files.index);
  return std::make_shared<FairseqData>(files, vocabulary);
}

}  // namespace seqconv::internal
