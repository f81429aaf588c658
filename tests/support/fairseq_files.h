#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "support/temporary_folder.h"

/// Writes binarised data byte by byte, as its format says; also wrong ones.
namespace seqconv::internal::testing {

/// Appends a number as its bytes.
template <class T>
void append_number(std::string& bytes, std::type_identity_t<T> value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

using Sentences = std::vector<std::vector<int64_t>>;

/// The bytes of the two files.
struct FairseqBytes {
  std::string index;
  std::string data;

  /// Writes NAME.idx and NAME.bin; returns the path of the latter.
  std::string write(const TemporaryFolder& folder, const std::string& name) const {
    folder.write(name + ".idx", index);
    return folder.write(name + ".bin", data);
  }
};

/// The kind "mmap": numbers of type T, whose code is `code`.
template <class T>
FairseqBytes mapped_bytes(const Sentences& sentences, uint8_t code) {
  using namespace std::string_view_literals;
  FairseqBytes bytes;
  bytes.index = "MMIDIDX\0\0"sv;
  append_number<uint64_t>(bytes.index, 1);
  append_number<uint8_t>(bytes.index, code);
  append_number<uint64_t>(bytes.index, sentences.size());
  std::string places;
  for (const auto& ids : sentences) {
    append_number<int32_t>(bytes.index, static_cast<int32_t>(ids.size()));
    append_number<int64_t>(places, static_cast<int64_t>(bytes.data.size()));
    for (const int64_t id : ids)
      append_number<T>(bytes.data, static_cast<T>(id));
  }
  bytes.index += places;
  return bytes;
}

/// The kind "lazy" or "cached", which stores ids plus one.
template <class T>
FairseqBytes cached_bytes(const Sentences& sentences, uint64_t code) {
  using namespace std::string_view_literals;
  FairseqBytes bytes;
  bytes.index = "TNTIDX\0\0"sv;
  for (const uint64_t field :
       {uint64_t{1},
        code,
        uint64_t{sizeof(T)},
        uint64_t{sentences.size()},
        uint64_t{sentences.size()}})
    append_number<uint64_t>(bytes.index, field);
  std::string places;
  std::string sizes;
  int64_t dimension = 0;
  int64_t place = 0;
  append_number<int64_t>(bytes.index, 0);
  append_number<int64_t>(places, 0);
  for (const auto& ids : sentences) {
    append_number<int64_t>(bytes.index, ++dimension);
    append_number<int64_t>(places, place += std::ssize(ids));
    append_number<int64_t>(sizes, std::ssize(ids));
    for (const int64_t id : ids)
      append_number<T>(bytes.data, static_cast<T>(id + 1));
  }
  bytes.index += places + sizes;
  return bytes;
}

}  // namespace seqconv::internal::testing
