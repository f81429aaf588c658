#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

/// Texts in JSON of users, found by a key with dots, and JSON as text.
namespace seqconv::internal {

/// A value without blanks or line feeds; what is not UTF-8 becomes U+FFFD.
std::string json_line(const Json& value);

/// The texts that `key` names in an object: one, or those of a list. Dots lead
/// inwards, into lists by a number from 0: "article.body", "target.0"; a name
/// that has dots itself is found too. Errors begin with `where`: nothing of
/// that name, something that is no text, no texts at all.
std::vector<std::string> json_texts(
    const Json& object, const std::string& key, const std::string& where);

/// The texts that `key` names in an object, as json_texts; none where it is
/// null, and null in a list is no text.
std::vector<std::string> json_optional_texts(
    const Json& object, const std::string& key, const std::string& where);

/// A line that must be an object. Error for what is not valid JSON, names a key
/// twice or is nested deeper than 32 levels.
Json json_line_object(std::string_view line, const std::string& where);

/// json_texts of such a line.
std::vector<std::string> json_line_texts(
    std::string_view line, const std::string& key, const std::string& where);

}  // namespace seqconv::internal
