#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace seqconv::internal {

/// The CRC-32 of zip archives (polynomial 0x04C11DB7, reflected), going on from
/// that of the bytes before.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

/// CRC-32C (Castagnoli: polynomial 0x1EDC6F41, reflected), as in iSCSI and
/// TFRecord files.
uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace seqconv::internal
