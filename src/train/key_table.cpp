#include "train/key_table.h"

#include <algorithm>

namespace seqconv::internal {

const Json* find_key(const Json& table, const std::string& key) {
  const Json* at = &table;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('.', begin), key.size());
    if (!at->is_object() || !at->contains(key.substr(begin, end - begin)))
      return nullptr;
    at = &at->at(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return at;
}

void set_key(Json& table, const std::string& key, Json value) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos)
    table[key] = std::move(value);
  else
    set_key(table[key.substr(0, dot)], key.substr(dot + 1), std::move(value));
}

Json merge_beneath(const Json& table, const Json& chosen) {
  Json merged = chosen;
  merge_tables(merged, table);
  return merged;
}

}  // namespace seqconv::internal
