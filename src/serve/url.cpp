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

}  // namespace

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
