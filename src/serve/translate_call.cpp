#include "serve/translate_call.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "base/json_guard.h"
#include "base/json_texts.h"
#include "base/utf8.h"
#include "serve/answers.h"
#include "serve/url.h"

namespace seqconv::internal {
namespace {

constexpr size_t kDeepestJson = 64;
constexpr size_t kMostNames =
    100;  // of a table or a form, each of which is compared with the others

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

using Fields = std::vector<std::pair<std::string, std::string>>;

Json read_json(const std::string& body) {
  try {
    JsonGuard::check(body, kDeepestJson, "Invalid JSON", RepeatedKeys::kReject, kMostNames);
    Json object = Json::parse(body);
    if (!object.is_object())
      bad("Invalid request: a JSON object was wanted, but got " + shorten(json_line(object)));
    return object;
  } catch (const Error& error) {
    bad(error.what());
  } catch (const Json::exception&) {
    bad("Invalid JSON");
  }
}

/// Texts, but for terms, which are JSON.
void add_form(const Fields& fields, Json& parameters) {
  Json own = Json::object();
  for (const auto& [name, value] : fields) {
    if (find_invalid_utf8(value) != value.npos)
      bad("Invalid request: " + name + " must be UTF-8");
    add_field(own, name, value);
    if (own.size() > kMostNames)
      bad(concat("Invalid request: there are more than ", kMostNames, " parameters"));
  }
  for (const auto& [name, value] : own.items())
    if (!parameters.contains(name))
      parameters[name] = name == "terms" && value.is_string() ? read_json(value) : value;
}

Fields read_parts(const HttpRequest& request) {
  auto fields = read_multipart_form(request.body, request.content_type);
  if (!fields)
    bad("Invalid request: the form of parts is not whole");
  return *std::move(fields);
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

}  // namespace

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

Json read_parameters(const HttpRequest& request) {
  Json parameters = Json::object();
  const std::string type = request.content_type.substr(0, request.content_type.find(';'));
  if (type == "application/json" || (type.empty() && request.body.starts_with('{')))
    parameters = read_json(request.body);
  else if (type == "application/x-www-form-urlencoded" || type.empty())
    add_form(read_form(request.body), parameters);
  else if (type == "multipart/form-data")
    add_form(read_parts(request), parameters);
  else if (!request.body.empty())
    throw CallError(415, "The body must be JSON or a form, but got " + type);
  add_form(read_form(request.query), parameters);
  return parameters;
}

std::string text_parameter(const Json& parameters, const char* name, const std::string& standard) {
  const auto found = parameters.find(name);
  if (found == parameters.end() || found->is_null())
    return standard;
  if (!found->is_string())
    bad(std::string("Invalid request: ") + name + " must be a text");
  return found->get<std::string>();
}

void read_texts(const Json& parameters, const ServeOptions& limits, TranslateCall& call) {
  const auto q = parameters.find("q");
  if (q == parameters.end() || q->is_null())
    bad("Invalid request: missing q parameter");
  call.is_list = q->is_array();
  const Json items = call.is_list ? *q : Json::array({*q});
  if (static_cast<int64_t>(items.size()) > limits.max_items)
    bad(concat(
        "Invalid request: there may be ", limits.max_items, " texts, but got ", items.size()));
  for (const Json& item : items) {
    if (!item.is_string())
      bad("Invalid request: q must be a text or a list of texts");
    call.texts.push_back(with_line_feeds(item.get<std::string>()));
    call.characters += count_characters(call.texts.back());
  }
  if (call.characters > limits.max_characters)
    bad(concat(
        "Invalid request: texts may have ",
        limits.max_characters,
        " characters, but got ",
        call.characters));
}

namespace {

/// A number, true or false: of JSON as it is, of a form as a text. Lists and objects are texts
/// that are none of these.
std::string scalar_parameter(const Json& parameters, const char* name, const Json& standard) {
  const auto found = parameters.find(name);
  const bool is_said = found != parameters.end() && !found->is_null();
  const Json& value = is_said ? *found : standard;
  if (value.is_number_float())  // 20.0 and 2e15 are whole numbers
    if (const double real = value.get<double>();
        std::trunc(real) == real && std::abs(real) < 0x1p63)
      return std::to_string(static_cast<int64_t>(real));
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

/// A number within its limits: a whole one for a T that is.
template <class T>
T number_parameter(
    const Json& parameters,
    const char* name,
    std::type_identity_t<T> standard,
    std::type_identity_t<T> least,
    std::type_identity_t<T> most) {
  const std::string text = scalar_parameter(parameters, name, standard);
  const char* const end = text.data() + text.size();
  T value = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= least && value <= most))
    bad(concat(
        "Invalid request: ",
        name,
        std::is_integral_v<T> ? " must be a whole number from " : " must be a number from ",
        least,
        " to ",
        most,
        ", but got ",
        text));
  return value;
}

bool flag_parameter(const Json& parameters, const char* name) {
  const std::string text = scalar_parameter(parameters, name, false);
  if (text != "true" && text != "false")
    bad(concat("Invalid request: ", name, " must be true or false, but got ", text));
  return text == "true";
}

/// Terms of a JSON object; null where there are none.
std::shared_ptr<const Terminology> read_terminology(const Json& parameters) {
  const auto found = parameters.find("terms");
  if (found == parameters.end() || found->is_null())
    return nullptr;
  try {
    return std::make_shared<const Terminology>(
        terms_in(*found, "Invalid request"), "Invalid request: terms");
  } catch (const Error& error) {
    bad(error.what());
  }
}

}  // namespace

TranslateCall read_translate_call(const Json& parameters, const ServeOptions& limits) {
  TranslateCall call;
  read_texts(parameters, limits, call);
  for (const auto& [name, value] : {std::pair("source", &call.source), {"target", &call.target}}) {
    *value = text_parameter(parameters, name);
    if (value->empty())
      bad(std::string("Invalid request: missing ") + name + " parameter");
  }
  const std::string format = scalar_parameter(parameters, "format", "text");
  if (format != "text" && format != "html")
    bad("Invalid request: format must be text or html, but got " + format);
  call.format = format == "html" ? DocumentFormat::kHtml : DocumentFormat::kText;
  call.alternatives =
      number_parameter<int64_t>(parameters, "alternatives", 0, 0, limits.max_alternatives);
  call.wants_alignments = flag_parameter(parameters, "alignments");
  call.wants_notes = flag_parameter(parameters, "notes");
  call.terms = read_terminology(parameters);
  return call;
}

GenerateCall read_generate_call(const Json& parameters, const ServeOptions& limits) {
  GenerateCall call;
  if (!parameters.contains("prompt") || parameters["prompt"].is_null())
    bad("Invalid request: missing prompt parameter");
  GenerationRequest& request = call.request;
  request.prompt = text_parameter(parameters, "prompt");
  if (const int64_t got = count_characters(request.prompt); got > limits.max_characters)
    bad(concat(
        "Invalid request: the prompt may have ",
        limits.max_characters,
        " characters, but got ",
        got));
  call.model = text_parameter(parameters, "model");
  request.length = number_parameter<int64_t>(
      parameters, "length", std::min<int64_t>(200, limits.max_length), 1, limits.max_length);
  SamplingOptions& sampling = request.sampling;
  sampling.temperature = number_parameter<double>(parameters, "temperature", 1, 0, 100);
  sampling.top_p = number_parameter<double>(parameters, "top_p", 1, 0, 1);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  sampling.top_k = number_parameter<int64_t>(parameters, "top_k", 0, 0, kMost);
  if (parameters.contains("seed") && !parameters["seed"].is_null())
    sampling.seed =
        static_cast<uint64_t>(number_parameter<int64_t>(parameters, "seed", 0, 0, kMost));
  call.wants_stream = flag_parameter(parameters, "stream");
  return call;
}

}  // namespace seqconv::internal
