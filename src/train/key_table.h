#pragma once

#include <string>

#include "base/options.h"

/// Tables of a configuration, by keys with dots: "model.dim".
namespace seqconv::internal {

/// The value of a key; null where `table` lacks it.
const Json* find_key(const Json& table, const std::string& key);

/// Sets the value of a key, and makes the tables that lead to it.
void set_key(Json& table, const std::string& key, Json value);

/// Merges `chosen` beneath `table`, whose keys win.
Json merge_beneath(const Json& table, const Json& chosen);

}  // namespace seqconv::internal
