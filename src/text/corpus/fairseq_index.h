#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

/// The index of fairseq's binarised data: which numbers are a sentence.
namespace seqconv::internal {

/// Kinds of numbers that ids are stored as, with the codes of the index.
enum class IdKind : uint8_t {
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt16 = 8,
  kUInt32 = 9,
  kUInt64 = 10,
};

/// Bytes of one number.
int64_t width(IdKind kind);

/// A place in the data file, in numbers. As the index says it: not checked
/// against the size of that file.
struct SentencePlace {
  int64_t begin = 0;
  int64_t count = 0;
};

class FairseqIndex {
 public:
  virtual ~FairseqIndex() = default;
  virtual int64_t size() const = 0;
  /// Where sentence `index` stands; it must be below size().
  virtual SentencePlace place(int64_t index) const = 0;
  /// What is taken from a stored number to have the id.
  virtual int64_t shift() const = 0;
  virtual IdKind kind() const = 0;
};

/// Reads either kind of index; Error for anything else.
std::unique_ptr<const FairseqIndex> open_fairseq_index(const std::filesystem::path& path);

}  // namespace seqconv::internal
