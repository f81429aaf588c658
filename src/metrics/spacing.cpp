#include "metrics/spacing.h"

namespace seqconv::internal::metrics {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_point(char c) {
  return c == '.' || c == ',';
}

bool is_symbol_byte(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return c >= ' ' && c < 0x7F && !is_digit(c) && !(lower >= 'a' && lower <= 'z') && c != '\'' &&
      c != '-' && !is_point(c);
}

}  // namespace

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos)
    return;
  std::string out;
  out.reserve(text.size());
  size_t copied = 0;
  for (; at != std::string::npos; at = text.find(from, copied)) {
    out.append(text, copied, at - copied);
    out += to;
    copied = at + from.size();
  }
  out.append(text, copied);
  text = std::move(out);
}

void replace_entities(std::string& text) {
  if (text.find('&') == std::string::npos)
    return;
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
}

std::string space_symbols(std::string_view text) {
  return set_apart(text, is_symbol_byte);
}

std::string space_points(std::string_view text) {
  const auto not_digit = [](char c) { return !is_digit(c); };
  const auto is_dash = [](char c) { return c == '-'; };
  std::string out(text);
  if (out.find_first_of(".,") != std::string::npos) {
    out = space_pairs(text, not_digit, is_point, {.behind = true});
    out = space_pairs(std::string_view(out), is_point, not_digit, {.before = true});
  }
  if (out.find('-') == std::string::npos)
    return out;
  return space_pairs(std::string_view(out), is_digit, is_dash, {.behind = true});
}

}  // namespace seqconv::internal::metrics
