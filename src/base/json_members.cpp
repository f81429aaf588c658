#include "base/json_members.h"

#include <cmath>
#include <cstdlib>

#include "base/json_guard.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Where the digits from `at` on end.
size_t digits_end(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kDigits, at), text.size());
}

/// Whether a text of digits, signs, dots and exponents is a number of JSON.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = digits_end(text, at);
  if (whole == at || (text[at] == '0' && whole > at + 1))
    return false;
  at = whole;
  if (at < text.size() && text[at] == '.') {
    const size_t end = digits_end(text, at + 1);
    if (end == at + 1)
      return false;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at += 1;
    if (at < text.size() && (text[at] == '+' || text[at] == '-'))
      at += 1;
    const size_t end = digits_end(text, at);
    if (end == at)
      return false;
    at = end;
  }
  return at == text.size();
}

/// Where the string that begins at `quote` ends, behind its last quote.
size_t string_end(std::string_view text, size_t quote) {
  size_t at = quote + 1;
  while (at < text.size() && text[at] != '"')
    at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

/// The library refuses numbers that no float64 can hold, though they are valid:
/// such a number as a 0 of the same width, all else as it is.
std::string with_small_numbers(std::string_view text) {
  std::string out(text);
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = string_end(text, at);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const size_t end = std::min(text.find_first_not_of("0123456789+-.eE", at), text.size());
      const std::string number(text.substr(at, end - at));
      if (is_json_number(number) && !std::isfinite(std::strtod(number.c_str(), nullptr))) {
        out.replace(at, end - at, end - at, ' ');
        out[end - 1] = '0';
      }
      at = end;
    } else {
      ++at;
    }
  }
  return out;
}

/// What is written in a valid object.
class MemberReader {
 public:
  explicit MemberReader(std::string_view text) : text_(text) {}

  std::vector<JsonMember> read() {
    while (at_ < text_.size())
      step();
    for (JsonMember& member : members_)
      member.name = nlohmann::json::parse(member.key).get<std::string>();
    return std::move(members_);
  }

 private:
  void step() {
    const char c = text_[at_];
    const size_t begin = at_;
    at_ = c == '"' ? string_end(text_, at_) : at_ + 1;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      return;
    if (c == '}' || c == ']')
      --depth_;
    if (depth_ == 1 && c == ':')
      in_value_ = true;
    else if (depth_ == 1 && c == ',')
      in_value_ = false;
    else if (depth_ > 0)
      append(text_.substr(begin, at_ - begin));
    if (c == '{' || c == '[')
      ++depth_;
  }

  void append(std::string_view piece) {
    if (in_value_) {
      members_.back().value += piece;
    } else {
      members_.emplace_back().key = piece;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool in_value_ = false;
  std::vector<JsonMember> members_;
};

}  // namespace

std::optional<std::vector<JsonMember>> json_members(
    std::string_view text, const std::string& where) {
  // Where files were joined there may be one in front of any line.
  while (text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  JsonGuard::check(with_small_numbers(text), kMaxJsonDepth, where, RepeatedKeys::kAccept);
  const size_t first = text.find_first_not_of(" \t\n\r");
  if (text[first] != '{')
    return std::nullopt;
  return MemberReader(text).read();
}

}  // namespace seqconv::internal
