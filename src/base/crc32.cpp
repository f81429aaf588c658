#include "base/crc32.h"

#include <array>
#include <cstring>

namespace seqconv::internal {
namespace {

constexpr size_t kSlices = 8;
using Table = std::array<std::array<uint32_t, 256>, kSlices>;

/// Entry [s][b]: what byte b does to the sum s bytes later.
constexpr Table make_table(uint32_t polynomial) {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ (sum & 1 ? polynomial : 0u);
    table[0][byte] = sum;
  }
  for (size_t slice = 1; slice < kSlices; ++slice)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t sum = table[slice - 1][byte];
      table[slice][byte] = (sum >> 8) ^ table[0][sum & 0xFF];
    }
  return table;
}

// Polynomials with their bits reversed.
constexpr Table kZip = make_table(0xEDB88320u);
constexpr Table kCastagnoli = make_table(0x82F63B78u);

uint32_t sum_of(const Table& table, std::span<const std::byte> bytes, uint32_t before) {
  uint32_t sum = ~before;
  while (bytes.size() >= kSlices) {  // eight bytes at a time
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= sum;
    sum = 0;
    for (size_t i = 0; i < kSlices; ++i)
      sum ^= table[kSlices - 1 - i][(word >> (8 * i)) & 0xFF];
    bytes = bytes.subspan(kSlices);
  }
  for (const std::byte byte : bytes)
    sum = (sum >> 8) ^ table[0][(sum ^ static_cast<uint32_t>(byte)) & 0xFF];
  return ~sum;
}

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  return sum_of(kZip, bytes, before);
}

uint32_t crc32c(std::span<const std::byte> bytes) {
  return sum_of(kCastagnoli, bytes, 0);
}

}  // namespace seqconv::internal
