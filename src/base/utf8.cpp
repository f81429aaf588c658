#include "seqconv/base/utf8.h"

namespace seqconv {
namespace {

/// Bytes of the character that starts at `at`, or 0 when it is malformed.
size_t character_size(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80)
    return 1;
  size_t size = 0;
  // The second byte's range is what keeps out overlong forms and surrogates.
  unsigned low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    low = first == 0xE0 ? 0xA0 : low;
    high = first == 0xED ? 0x9F : high;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    low = first == 0xF0 ? 0x90 : low;
    high = first == 0xF4 ? 0x8F : high;
  } else {
    return 0;
  }
  if (byte(1) < low || byte(1) > high)
    return 0;
  for (size_t i = 2; i < size; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xBF)
      return 0;
  return size;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t size = character_size(text, at);
    if (size == 0)
      return at;
    at += size;
  }
  return at;
}

}  // namespace seqconv
