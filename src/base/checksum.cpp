#include "base/checksum.h"

#include <cstring>

#include "base/files.h"
#include "base/random.h"

namespace seqconv::internal {

uint64_t checksum(std::span<const std::byte> bytes, uint64_t start) {
  uint64_t sum = start;
  size_t position = 0;
  uint64_t word = 0;
  for (; position + sizeof word <= bytes.size(); position += sizeof word) {
    std::memcpy(&word, bytes.data() + position, sizeof word);
    sum = mix_words(sum, word);
  }
  word = 0;
  if (position < bytes.size())
    std::memcpy(&word, bytes.data() + position, bytes.size() - position);
  return mix_words(mix_words(sum, word), bytes.size());
}

uint64_t checksum(const std::string& text) {
  return checksum(std::as_bytes(std::span(text)));
}

uint64_t file_checksum(const RootedPath& file) {
  const MappedFile mapped(file);
  return checksum(mapped.bytes());
}

std::string checksum_text(uint64_t sum) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, sum >>= 4)
    text[static_cast<size_t>(i)] = kDigits[sum & 15];
  return text;
}

}  // namespace seqconv::internal
