#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace seqconv::internal {

/// "a b" of "a%20b"; '+' stays, as does a '%' without two hexadecimal digits.
std::string decode_url(std::string_view text);

/// Names and values of a query or a form: "q=a+b&q=c", in their order.
std::vector<std::pair<std::string, std::string>> read_form(std::string_view text);

/// Names and values of a form of parts (RFC 7578), of whose files the content is the value; none:
/// it is not whole. `content_type` names the boundary.
std::optional<std::vector<std::pair<std::string, std::string>>> read_multipart_form(
    std::string_view text, std::string_view content_type);

}  // namespace seqconv::internal
