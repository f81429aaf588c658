#include "base/json_texts.h"

#include <charconv>

#include "base/json_guard.h"
#include "base/options.h"

namespace seqconv::internal {
namespace {

/// An entry of a list by its number in digits; null where there is none.
const Json* entry_of(const Json& list, std::string_view number) {
  size_t index = 0;
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, index);
  return read.ec == std::errc() && read.ptr == end && index < list.size() ? &list[index] : nullptr;
}

/// What a key with dots names; null where there is nothing.
const Json* find_inside(const Json& value, const std::string& key) {
  if (value.is_object())
    if (const auto found = value.find(key); found != value.end())
      return &*found;
  const size_t dot = key.find('.');
  const std::string first = key.substr(0, dot);
  const Json* inner = nullptr;
  if (value.is_array())
    inner = entry_of(value, first);
  else if (value.is_object() && dot != std::string::npos)
    if (const auto found = value.find(first); found != value.end())
      inner = &*found;
  if (inner == nullptr || dot == std::string::npos)
    return inner;
  return find_inside(*inner, key.substr(dot + 1));
}

std::vector<std::string> texts_of(
    const Json& value, const std::string& key, const std::string& where) {
  if (value.is_string())
    return {value.get<std::string>()};
  std::vector<std::string> texts;
  if (value.is_array())
    for (const Json& text : value)
      if (text.is_string())
        texts.push_back(text.get<std::string>());
  SEQCONV_CHECK(
      !texts.empty() && texts.size() == value.size(),
      where,
      ": \"",
      key,
      "\" must be a text or a list of texts, but got ",
      value.is_structured() ? value.type_name() : detail::show_json(value));
  return texts;
}

}  // namespace

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> json_texts(
    const Json& object, const std::string& key, const std::string& where) {
  const Json* const value = find_inside(object, key);
  SEQCONV_CHECK(value != nullptr, where, ": there is no \"", key, "\"");
  return texts_of(*value, key, where);
}

std::vector<std::string> json_optional_texts(
    const Json& object, const std::string& key, const std::string& where) {
  const Json* const value = find_inside(object, key);
  if (value == nullptr || !(value->is_null() || value->is_array()))
    return json_texts(object, key, where);
  Json texts = Json::array();
  for (const Json& text : *value)
    if (!text.is_null())
      texts.push_back(text);
  return texts.empty() && (value->is_null() || !value->empty()) ? std::vector<std::string>()
                                                                : texts_of(texts, key, where);
}

Json json_line_object(std::string_view line, const std::string& where) {
  Json object = parse_json(line, where);
  SEQCONV_CHECK(
      object.is_object(), where, ": a line must be a JSON object, but got ", shorten(line));
  return object;
}

std::vector<std::string> json_line_texts(
    std::string_view line, const std::string& key, const std::string& where) {
  return json_texts(json_line_object(line, where), key, where);
}

}  // namespace seqconv::internal
