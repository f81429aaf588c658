#include "engine/request_reader.h"

namespace seqconv::engine {
namespace {

std::string
string_field(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end())
    return "";
  if (!found->is_string())
    fail(
        where,
        ": \"",
        key,
        "\" must be a string, but got ",
        detail::show_json(*found));
  // A line break inside would become two lines of output.
  return clean_line(found->get_ref<const std::string&>());
}

}  // namespace

RequestReader::RequestReader(std::istream& in, bool json)
    : lines_(in, "standard input", BadBytes::kReplace), json_(json) {}

Json RequestReader::parse_object(const std::string& line) const {
  Json object = parse_json(line, lines_.where());
  if (!object.is_object() || !object.contains("text"))
    fail(
        lines_.where(),
        ": a request must be an object with \"text\", but got ",
        detail::show_json(object));
  return object;
}

bool RequestReader::read(int64_t count, Buffer& buffer) {
  buffer.requests.clear();
  buffer.objects.clear();
  std::string line;
  while (static_cast<int64_t>(buffer.requests.size()) < count &&
         lines_.next(line)) {
    if (buffer.requests.empty())
      buffer.first_line = lines_.line_number();
    TranslationRequest request;
    if (json_) {
      Json object = parse_object(line);
      request.line = string_field(object, "text", lines_.where());
      request.target_prefix =
          string_field(object, "target_prefix", lines_.where());
      buffer.objects.push_back(std::move(object));
    } else {
      request.line = line;
      buffer.objects.push_back(Json{{"text", line}});
    }
    buffer.requests.push_back(std::move(request));
  }
  return !buffer.requests.empty();
}

}  // namespace seqconv::engine
