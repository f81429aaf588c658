#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace seqconv::internal {

/// A key and a value of a JSON object as they were written, but for blanks
/// between tokens: a number keeps its digits, a string its escapes.
struct JsonMember {
  std::string name;   ///< the key that is meant: no quotes, no escapes
  std::string key;    ///< JSON, with its quotes
  std::string value;  ///< JSON
};

/// The members of the JSON object `text`, in their order, keys that come twice
/// among them; nothing for JSON that is no object. Numbers may be beyond every
/// type. Error behind `where` for what is not valid JSON or nested deeper than
/// 32 levels.
std::optional<std::vector<JsonMember>> json_members(
    std::string_view text, const std::string& where);

}  // namespace seqconv::internal
