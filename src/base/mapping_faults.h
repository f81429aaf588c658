#pragma once

#include <cstddef>
#include <filesystem>

/// Files that are cut short while they are mapped: reading beyond their new end
/// is a SIGBUS.
namespace seqconv::internal {

/// From now on such a signal ends the process with an error that names the file
/// and exit code 1, where it comes of a MappedFile of this library; others go
/// where they went before. For programs: a library handles no signals.
void report_mapping_faults();

/// Notes where a file is mapped, for the message; `forget_mapping` before it is
/// not any more. There is room for a few hundred; further ones have no names.
void note_mapping(const void* data, size_t size, const std::filesystem::path& file);
void forget_mapping(const void* data);

}  // namespace seqconv::internal
