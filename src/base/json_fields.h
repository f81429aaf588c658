#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

/// Values of JSON objects that strangers may have written. `path` is what leads
/// to the object, "text.source"; UsageErrors say which key was wanted there, or
/// of what type.
namespace seqconv::internal {

/// The value of a key that must be there.
const Json& json_field(const Json& object, const std::string& path, const char* key);

/// The value of a key which holds a bool, an int64_t, a double or a
/// std::string.
template <class T>
T json_value(const Json& object, const std::string& path, const char* key) {
  T value{};
  detail::read_value(json_field(object, path, key), detail::join_key(path, key), value);
  return value;
}

/// The value of a key which holds a list of anything.
const Json& json_list(const Json& object, const std::string& path, const char* key);

/// The value of a key which holds a list of ids.
std::vector<int32_t> json_ids(const Json& object, const std::string& path, const char* key);

}  // namespace seqconv::internal
