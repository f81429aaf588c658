#include "serve/translate_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_guard.h"
#include "base/utf8.h"
#include "serve/url.h"

namespace seqconv::internal {
namespace {

constexpr size_t kDeepestJson = 64;

[[noreturn]] void bad(const std::string& text) {
  throw CallError(400, text);
}

void add_field(Json& parameters, const std::string& name, const std::string& value) {
  if (!parameters.contains(name))
    parameters[name] = value;
  else if (parameters[name].is_array())
    parameters[name].push_back(value);
  else
    parameters[name] = Json::array({parameters[name], value});
}

void add_form(std::string_view form, Json& parameters) {
  Json own = Json::object();
  for (const auto& [name, value] : read_form(form)) {
    if (find_invalid_utf8(value) != value.npos)
      bad("Invalid request: " + name + " must be UTF-8");
    add_field(own, name, value);
  }
  for (const auto& [name, value] : own.items())
    if (!parameters.contains(name))
      parameters[name] = value;
}

Json read_json(const std::string& body) {
  try {
    JsonGuard::check(body, kDeepestJson, "Invalid JSON");
    Json object = Json::parse(body);
    if (!object.is_object())
      bad("Invalid request: the body must be a JSON object");
    return object;
  } catch (const Error& error) {
    bad(error.what());
  } catch (const Json::exception&) {
    bad("Invalid JSON");
  }
}

/// Line ends of forms are CR LF.
std::string with_line_feeds(std::string text) {
  size_t place = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n')
      continue;
    text[place++] = text[i];
  }
  text.resize(place);
  return text;
}

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

HttpAnswer error_answer(unsigned status, const std::string& text) {
  return {status, "application/json", Json{{"error", text}}.dump(-1, ' ', false,
                                                Json::error_handler_t::replace)};
}

Json read_parameters(const HttpRequest& request) {
  Json parameters = Json::object();
  const std::string type = request.content_type.substr(0, request.content_type.find(';'));
  if (type == "application/json" || (type.empty() && request.body.starts_with('{')))
    parameters = read_json(request.body);
  else if (type == "application/x-www-form-urlencoded" || type.empty())
    add_form(request.body, parameters);
  else if (!request.body.empty())
    throw CallError(415, "The body must be JSON or a form, but got " + type);
  add_form(request.query, parameters);
  return parameters;
}

std::string text_parameter(
    const Json& parameters, const char* name, const std::string& standard) {
  const auto found = parameters.find(name);
  if (found == parameters.end() || found->is_null())
    return standard;
  if (found->is_string())
    return found->get<std::string>();
  if (found->is_number() || found->is_boolean())
    return found->dump();
  bad(std::string("Invalid request: ") + name + " must be a text");
}

void read_texts(const Json& parameters, const CallLimits& limits, TranslateCall& call) {
  const auto q = parameters.find("q");
  if (q == parameters.end() || q->is_null())
    bad("Invalid request: missing q parameter");
  call.is_list = q->is_array();
  const Json items = call.is_list ? *q : Json::array({*q});
  if (static_cast<int64_t>(items.size()) > limits.items)
    bad(concat("Invalid request: there may be ", limits.items, " texts, but got ", items.size()));
  int64_t characters = 0;
  for (const Json& item : items) {
    if (!item.is_string())
      bad("Invalid request: q must be a text or a list of texts");
    call.texts.push_back(with_line_feeds(item.get<std::string>()));
    characters += count_characters(call.texts.back());
  }
  if (characters > limits.characters)
    bad(concat("Invalid request: texts may have ", limits.characters, " characters, but got ",
               characters));
}

TranslateCall read_translate_call(const Json& parameters, const CallLimits& limits) {
  TranslateCall call;
  read_texts(parameters, limits, call);
  for (const auto& [name, value] : {std::pair("source", &call.source), {"target", &call.target}}) {
    *value = text_parameter(parameters, name);
    if (value->empty())
      bad(std::string("Invalid request: missing ") + name + " parameter");
  }
  const std::string format = text_parameter(parameters, "format", "text");
  if (format != "text" && format != "html")
    bad("Invalid request: format must be text or html, but got " + format);
  call.format = format == "html" ? DocumentFormat::kHtml : DocumentFormat::kText;
  const std::string number = text_parameter(parameters, "alternatives", "0");
  if (number.empty() || number.size() > 6 ||
      !std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }))
    bad("Invalid request: alternatives must be a number, but got " + number);
  call.alternatives = std::stoll(number);
  if (call.alternatives > limits.alternatives)
    bad(concat("Invalid request: there may be ", limits.alternatives, " alternatives, but got ",
               call.alternatives));
  return call;
}

}  // namespace seqconv::internal
