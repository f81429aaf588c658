#include "engine/request_reader.h"

#include "seqconv/base/options.h"
#include "seqconv/data/fairseq_data.h"

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

RequestReader::RequestReader(
    const std::string& input,
    std::istream& in,
    bool json,
    const TextPipeline& text)
    : input_(input), text_(text), json_(json) {
  if (input.empty()) {
    lines_.emplace(in, "standard input", BadBytes::kReplace);
  } else if (!is_fairseq_data(input)) {
    lines_.emplace(input, BadBytes::kReplace);
  } else {
    if (json)
      fail_usage(
          "--json-input reads lines, but '",
          input,
          "' is binarised data by its name");
    sentences_ = open_fairseq_data(input, text.vocabulary().size());
  }
}

Json RequestReader::parse_object(const std::string& line) const {
  Json object = parse_json(line, lines_->where());
  if (!object.is_object() || !object.contains("text"))
    fail(
        lines_->where(),
        ": a request must be an object with \"text\", but got ",
        detail::show_json(object));
  return object;
}

void RequestReader::add_line(const std::string& line, Buffer& buffer) const {
  TranslationRequest request{.where = lines_->where()};
  if (json_) {
    Json object = parse_object(line);
    request.line = string_field(object, "text", lines_->where());
    request.target_prefix =
        string_field(object, "target_prefix", lines_->where());
    buffer.objects.push_back(std::move(object));
  } else {
    request.line = line;
    buffer.objects.push_back(Json{{"text", line}});
  }
  buffer.requests.push_back(std::move(request));
}

void RequestReader::add_ids(Buffer& buffer) {
  const auto found = sentences_->tokens(taken_ - 1);
  std::vector<int32_t> ids(found.begin(), found.end());
  buffer.objects.push_back(Json{{"text", text_.decode(ids)}});
  buffer.requests.push_back(
      {.ids = std::move(ids), .where = concat(input_, ": sentence ", taken_)});
}

bool RequestReader::next(std::string& line) {
  if (lines_)
    return lines_->next(line);
  if (taken_ == sentences_->size())
    return false;
  ++taken_;
  return true;
}

bool RequestReader::read(int64_t count, Buffer& buffer) {
  buffer.requests.clear();
  buffer.objects.clear();
  std::string line;
  while (static_cast<int64_t>(buffer.requests.size()) < count && next(line)) {
    if (buffer.requests.empty())
      buffer.first_line = lines_ ? lines_->line_number() : taken_;
    if (lines_)
      add_line(line, buffer);
    else
      add_ids(buffer);
  }
  return !buffer.requests.empty();
}

}  // namespace seqconv::engine
