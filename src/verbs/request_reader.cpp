#include "verbs/request_reader.h"

#include "seqconv/base/options.h"
#include "seqconv/data/fairseq_data.h"

namespace seqconv::verbs {
namespace {

/// The text of a field that comes once at most; nothing when it does not.
std::optional<std::string> string_field(
    const std::vector<JsonMember>& members,
    std::string_view name,
    const std::string& where) {
  const JsonMember* found = nullptr;
  for (const JsonMember& member : members) {
    if (member.name != name)
      continue;
    SEQCONV_CHECK(!found, where, ": \"", name, "\" comes twice");
    found = &member;
  }
  if (!found)
    return std::nullopt;
  SEQCONV_CHECK(
      found->value.starts_with('"'),
      where,
      ": \"",
      name,
      "\" must be a string, but got ",
      shorten(found->value));
  // A line break inside would become two lines of output.
  return clean_line(Json::parse(found->value).get_ref<const std::string&>());
}

std::vector<JsonMember> text_member(const std::string& text) {
  const Json value = text;
  return {
      {"text",
       "\"text\"",
       value.dump(-1, ' ', false, Json::error_handler_t::replace)}};
}

}  // namespace

RequestReader::RequestReader(
    const std::string& input,
    std::istream& in,
    bool json,
    const TextPipeline& text)
    : text_(text), json_(json) {
  if (json && is_fairseq_data(input))
    fail_usage(
        "--json-input reads lines, but '",
        input,
        "' is binarised data by its name");
  if (input.empty())
    sentences_.emplace(in, "standard input", BadBytes::kReplace);
  else
    sentences_.emplace(input, text.vocabulary().size(), BadBytes::kReplace);
}

/// What is read before an error stays.
void RequestReader::read_line(
    TranslationRequest& request,
    RequestOrigin& origin) const {
  const std::string& line = sentences_->line();
  if (!json_) {
    origin.members = text_member(line);
    request.ids = encode(line);
    return;
  }
  const std::string where = sentences_->where();
  auto members = json_members(line, where);
  if (members)
    origin.members = std::move(*members);
  const auto text = string_field(origin.members, "text", where);
  SEQCONV_CHECK(
      text,
      where,
      ": a request must be an object with \"text\", but got ",
      shorten(line));
  request.target_prefix =
      string_field(origin.members, "target_prefix", where).value_or("");
  request.ids = encode(*text);
}

std::vector<int32_t> RequestReader::encode(const std::string& text) const {
  return located(
      [&] { return sentences_->where(); },
      [&] { return text_.encode(text); });
}

void RequestReader::add_sentence(Buffer& buffer) const {
  TranslationRequest request;
  RequestOrigin origin;
  if (!sentences_->is_text()) {
    request.ids = sentences_->ids();
    origin.members = text_member(text_.decode(*request.ids));
  } else {
    try {
      read_line(request, origin);
    } catch (const Error& error) {
      request = {};
      origin.error = error.what();
    }
  }
  origin.where = sentences_->where();
  buffer.requests.push_back(std::move(request));
  buffer.origins.push_back(std::move(origin));
}

bool RequestReader::read(int64_t count, Buffer& buffer) {
  if (failure_)
    std::rethrow_exception(failure_);
  buffer = {.first_line = sentences_->count() + 1};
  try {
    while (std::ssize(buffer.requests) < count && sentences_->next())
      add_sentence(buffer);
  } catch (const Error&) {
    if (buffer.requests.empty())
      throw;
    failure_ = std::current_exception();
  }
  return !buffer.requests.empty();
}

}  // namespace seqconv::verbs
