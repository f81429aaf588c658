#include "serve/url.h"

#include <algorithm>

namespace seqconv::internal {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The value of a parameter of a header, in quotes or without: "b" of 'x; name="b"; y=1'.
std::string_view parameter_of(std::string_view header, std::string_view name) {
  for (size_t at = header.find(name); at != header.npos; at = header.find(name, at + 1)) {
    std::string_view rest = header.substr(at + name.size());
    const bool begins = at > 0 && (header[at - 1] == ' ' || header[at - 1] == ';');
    if (!begins || !rest.starts_with('='))
      continue;
    rest.remove_prefix(1);
    if (rest.starts_with('"'))
      return rest.substr(1, std::min(rest.find('"', 1), rest.size()) - 1);
    return rest.substr(0, rest.find_first_of("; \r\n"));
  }
  return {};
}

}  // namespace

std::optional<std::vector<std::pair<std::string, std::string>>> read_multipart_form(
    std::string_view text, std::string_view content_type) {
  const std::string delimiter = "\r\n--" + std::string(parameter_of(content_type, "boundary"));
  if (delimiter.size() == 4 || !text.starts_with(std::string_view(delimiter).substr(2)))
    return std::nullopt;
  text.remove_prefix(delimiter.size() - 2);
  std::vector<std::pair<std::string, std::string>> fields;
  while (text.starts_with("\r\n")) {
    const size_t head = text.find("\r\n\r\n"), end = text.find(delimiter, 2);
    if (head == text.npos || end == text.npos || head + 2 > end)
      return std::nullopt;
    const size_t begin = std::min(head + 4, end);
    fields.emplace_back(
        parameter_of(text.substr(0, head), "name"), text.substr(begin, end - begin));
    text.remove_prefix(end + delimiter.size());
  }
  if (!text.starts_with("--"))
    return std::nullopt;
  return fields;
}

std::string decode_url(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = high >= 0 ? digit_of(text[i + 2]) : -1;
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::vector<std::pair<std::string, std::string>> read_form(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    std::string field(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (field.empty())
      continue;
    std::ranges::replace(field, '+', ' ');
    const size_t middle = std::min(field.find('='), field.size());
    const std::string_view value =
        std::string_view(field).substr(std::min(middle + 1, field.size()));
    fields.emplace_back(decode_url(std::string_view(field).substr(0, middle)), decode_url(value));
  }
  return fields;
}

}  // namespace seqconv::internal
