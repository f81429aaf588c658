#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/rooted_path.h"

namespace seqconv::internal {

/// A 64-bit checksum against damage and accidental change (not against an
/// adversary): eight bytes at a time through mix_words, then the length.
uint64_t checksum(std::span<const std::byte> bytes, uint64_t start = 0);

/// The checksum of a file's content.
uint64_t file_checksum(const RootedPath& file);

/// The checksum of a text.
uint64_t checksum(const std::string& text);

/// As 16 hexadecimal digits, for JSON and metadata.
std::string checksum_text(uint64_t sum);

}  // namespace seqconv::internal
