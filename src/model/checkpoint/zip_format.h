#pragma once

#include <cstddef>
#include <cstdint>

/// The parts of zip archives (PKWARE's APPNOTE 4.3): signatures and sizes of
/// the records without their variable tails. All numbers are little-endian.
namespace seqconv::internal::zip {

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kEndRecord = 0x06054b50;
inline constexpr uint32_t kEndRecord64 = 0x06064b50;
inline constexpr uint32_t kLocator64 = 0x07064b50;

inline constexpr size_t kLocalHeaderSize = 30;
inline constexpr size_t kDirectoryEntrySize = 46;
inline constexpr size_t kEndSize = 22;
inline constexpr size_t kEnd64Size = 56;
inline constexpr size_t kLocator64Size = 20;
inline constexpr size_t kLongestComment = 65535;

/// The extra field of 64-bit sizes, and the size that says to look there.
inline constexpr uint16_t kExtra64 = 1;
inline constexpr uint32_t kSeeExtra = 0xFFFFFFFF;

}  // namespace seqconv::internal::zip
