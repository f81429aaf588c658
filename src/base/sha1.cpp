#include "base/sha1.h"

#include <array>
#include <bit>
#include <cstdint>

namespace seqconv::internal {
namespace {

constexpr size_t kBlock = 64;
using State = std::array<uint32_t, 5>;

/// The text, a set bit, zeros, and the text's length in bits: whole blocks.
std::string padded(std::string_view text) {
  std::string bytes(text);
  bytes += '\x80';
  while (bytes.size() % kBlock != kBlock - 8)
    bytes += '\0';
  const uint64_t bits = 8 * static_cast<uint64_t>(text.size());
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes += static_cast<char>(bits >> shift & 0xFF);
  return bytes;
}

/// The function and the constant of a round.
uint32_t mixed(size_t round, const State& s) {
  if (round < 20)
    return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5A827999U;
  if (round < 40)
    return (s[1] ^ s[2] ^ s[3]) + 0x6ED9EBA1U;
  if (round < 60)
    return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8F1BBCDCU;
  return (s[1] ^ s[2] ^ s[3]) + 0xCA62C1D6U;
}

void add_block(std::string_view block, State& digest) {
  std::array<uint32_t, 80> words{};
  for (size_t i = 0; i < kBlock; ++i)
    words[i / 4] = words[i / 4] << 8 | static_cast<unsigned char>(block[i]);
  for (size_t i = 16; i < words.size(); ++i)
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  State s = digest;
  for (size_t i = 0; i < words.size(); ++i)
    s = {std::rotl(s[0], 5) + mixed(i, s) + s[4] + words[i], s[0], std::rotl(s[1], 30), s[2], s[3]};
  for (size_t i = 0; i < s.size(); ++i)
    digest[i] += s[i];
}

}  // namespace

std::string sha1_hex(std::string_view text) {
  State digest = {0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U};
  const std::string bytes = padded(text);
  for (size_t at = 0; at < bytes.size(); at += kBlock)
    add_block(std::string_view(bytes).substr(at, kBlock), digest);
  std::string hex;
  for (const uint32_t word : digest)
    for (int shift = 28; shift >= 0; shift -= 4)
      hex += "0123456789abcdef"[word >> shift & 0xF];
  return hex;
}

}  // namespace seqconv::internal
