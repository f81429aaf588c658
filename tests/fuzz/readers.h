#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace seqconv::internal::fuzz {

/// A reader of bytes that strangers may have written.
struct Reader {
  std::string_view name;
  void (*read)(std::string_view bytes);
};

/// All of them.
std::span<const Reader> readers();

/// A folder that is gone at the end.
const std::filesystem::path& scratch();
/// Writes a file, whatever was there before.
void write_bytes(const std::filesystem::path& file, std::string_view bytes);
/// True where an error holds the name of the JSON library, which is not its
/// input's.
bool is_librarys(std::string_view message, std::string_view input);
/// std::logic_error where something that must hold does not.
void require(bool fulfilled, const char* what);

}  // namespace seqconv::internal::fuzz
