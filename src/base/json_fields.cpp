#include "base/json_fields.h"

#include <limits>

namespace seqconv::internal {

const Json& json_field(const Json& object, const std::string& path, const char* key) {
  if (!object.is_object())
    fail_usage(path, " must be an object with '", key, "', but got ", detail::show_json(object));
  const auto found = object.find(key);
  if (found == object.end())
    fail_usage(path, ": the key '", key, "' is missing");
  return *found;
}

const Json& json_list(const Json& object, const std::string& path, const char* key) {
  const Json& list = json_field(object, path, key);
  if (!list.is_array())
    fail_usage(detail::join_key(path, key), " must be a list, but got ", detail::show_json(list));
  return list;
}

std::vector<int32_t> json_ids(const Json& object, const std::string& path, const char* key) {
  std::vector<int32_t> ids;
  for (const Json& entry : json_list(object, path, key)) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (!entry.is_number_integer() || entry < 0 || entry > kMost)
      fail_usage(
          detail::join_key(path, key),
          " must be ids, from 0 to ",
          kMost,
          ", but got ",
          detail::show_json(entry));
    ids.push_back(entry.get<int32_t>());
  }
  return ids;
}

}  // namespace seqconv::internal
