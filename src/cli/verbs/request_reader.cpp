#include "cli/verbs/request_reader.h"

#include "base/characters.h"
#include "base/json_texts.h"
#include "base/options.h"
#include "cli/verbs/request_options.h"
#include "text/corpus/fairseq_data.h"
#include "text/documents.h"
#include "text/line_reader.h"
#include "text/terminology.h"

namespace seqconv::internal::verbs {
namespace {

/// The text of a field that comes once at most; nothing when it does not.
std::optional<std::string> string_field(
    const std::vector<JsonMember>& members, std::string_view name, const std::string& where) {
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
  return Json::parse(found->value).get<std::string>();
}

/// A beginning of a summary, whose lines are sentences; the last of them has
/// ended where only a line end follows.
std::string summary_beginning(const std::string& text) {
  std::string line = summary_line({text});
  const std::string follows = text + '.';
  const auto lines = split_lines(follows);
  if (!line.empty() && lines.size() > 1 && document_line({std::string(lines.back())}) == ".")
    line += concat(" ", kSentenceEnd);
  return line;
}

JsonMember text_member(const std::string& name, const std::string& text) {
  return {name, json_line(name), json_line(text)};
}

/// The document that a key with dots names, as one line. Only the member that
/// holds it is parsed.
std::string document_in(
    const std::vector<JsonMember>& members, const std::string& key, const std::string& where) {
  const std::string first = key.substr(0, key.find('.'));
  Json object = Json::object();
  for (const JsonMember& member : members) {
    if (member.name != first && member.name != key)
      continue;
    SEQCONV_CHECK(
        !object.contains(member.name), where, ": \"", shorten(member.name), "\" comes twice");
    object[member.name] = parse_json(member.value, where);
  }
  return document_line(json_texts(object, key, where));
}

}  // namespace

RequestReader::RequestReader(
    const std::string& input,
    std::istream& in,
    InputFormat format,
    const RequestOptions& all,
    const TextPipeline& text)
    : all_(all), text_(text), format_(std::move(format)) {
  if (format_.format != TextFormat::kText && is_fairseq_data(input))
    fail_usage(
        format_.document_key.empty() && format_.stories.empty()
            ? "--json-input"
            : concat("--input-format ", enum_name(format_.format)),
        " reads lines, but '",
        input,
        "' is binarised data by its name");
  if (input.empty())
    sentences_.emplace(in, "standard input", BadBytes::kReplace);
  else
    sentences_.emplace(input, text_.vocabulary().size(), BadBytes::kReplace);
}

RequestReader::RequestReader(
    std::istream& piece,
    const std::string& name,
    int64_t lines_before,
    InputFormat format,
    const RequestOptions& all,
    const TextPipeline& text)
    : all_(all), text_(text), format_(std::move(format)) {
  sentences_.emplace(piece, name, BadBytes::kReplace, lines_before);
}

/// What is read before an error stays.
void RequestReader::read_line(TranslationInput& request, RequestOrigin& origin) const {
  const std::string& line = sentences_->line();
  switch (format_.format) {
    case TextFormat::kText:
      origin.members = {text_member("text", line)};
      request.ids = encode(line);
      keep_text(line, request);
      return;
    case TextFormat::kJson:
      return read_object(request, origin);
    case TextFormat::kStory:
      return read_named_story(request, origin);
  }
}

/// It becomes an object as others have it, so that its summary can be scored.
void RequestReader::read_named_story(TranslationInput& request, RequestOrigin& origin) const {
  const std::string& name = sentences_->line();
  origin.members = {text_member("id", name)};
  TextSource source(sentences_->where());
  source.folders = format_.stories;
  source.links = format_.links;
  const Story story = read_story(source, name, sentences_->where());
  origin.members.push_back(text_member("article", story.article));
  origin.members.push_back(
      text_member("highlights", sentence_lines(summary_line(story.highlights))));
  request.ids = encode(story.article);
  keep_text(story.article, request);
}

void RequestReader::read_object(TranslationInput& request, RequestOrigin& origin) const {
  const std::string& line = sentences_->line();
  const std::string where = sentences_->where();
  auto members = json_members(line, where);
  if (members)
    origin.members = std::move(*members);
  // The fields that say that a line failed are ours; an earlier run may have
  // said it.
  std::erase_if(origin.members, [&](const JsonMember& member) {
    return (member.name == "error" || member.name == "line") && !is_document(member.name);
  });
  const std::string& key = format_.document_key;
  const auto text = key.empty() ? string_field(origin.members, "text", where)
      : members                 ? std::optional(document_in(origin.members, key, where))
                                : std::nullopt;
  SEQCONV_CHECK(
      text,
      where,
      ": a request must be an object with \"",
      key.empty() ? "text" : key,
      "\", but got ",
      shorten(line));
  request.target_prefix = read_prefix(origin);
  located(
      [&] { return where; },
      [&] {
        read_request_options(
            origin.members,
            [&](const std::string& name) { return is_document(name); },
            all_.search,
            request);
      });
  request.terms = read_terms(origin);
  // A line break inside would become two lines of output.
  request.ids = encode(clean_line(*text));
  keep_text(*text, request);
}

std::string RequestReader::read_prefix(const RequestOrigin& origin) const {
  const std::string text =
      string_field(origin.members, "target_prefix", sentences_->where()).value_or("");
  return clean_line(format_.summaries ? summary_beginning(text) : text);
}

/// Reads the terms of "terms": an object of sources and targets.
std::vector<Term> RequestReader::read_terms(const RequestOrigin& origin) const {
  std::vector<Term> terms;
  const std::string where = sentences_->where();
  for (const JsonMember& member : origin.members) {
    if (member.name != "terms" || is_document(member.name))
      continue;
    SEQCONV_CHECK(terms.empty(), where, ": \"terms\" comes twice");
    terms = terms_in(json_line_object(member.value, where + ": \"terms\""), where);
  }
  return terms;
}

/// True when a member is, or holds, what is translated.
bool RequestReader::is_document(const std::string& name) const {
  const std::string& key = format_.document_key;
  return !key.empty() && (name == key || name == key.substr(0, key.find('.')));
}

std::vector<int32_t> RequestReader::encode(const std::string& text) const {
  return located([&] { return sentences_->where(); }, [&] { return text_.encode(text); });
}

/// Alignments tell of the text too, and protected pieces and terms are looked for in it.
void RequestReader::keep_text(const std::string& text, TranslationInput& request) const {
  if (all_.alignments != Alignments::kNone || all_.has_terms || !request.terms.empty() ||
      !text_.preparation().protects().empty())
    request.text = text;
}

void RequestReader::add_sentence(Buffer& buffer) const {
  TranslationInput request;
  request.sampling = all_.sampling;
  request.alignments = all_.alignments;
  RequestOrigin origin;
  if (!sentences_->is_text()) {
    request.ids = sentences_->ids();
    origin.members = {text_member("text", text_.decode(*request.ids))};
  } else {
    try {
      read_line(request, origin);
    } catch (const Error& error) {
      request = {};
      origin.error = error.what();
    }
  }
  origin.where = sentences_->where();
  origin.number = sentences_->count();
  buffer.requests.push_back(std::move(request));
  buffer.origins.push_back(std::move(origin));
}

bool RequestReader::read(int64_t count, Buffer& buffer) {
  if (failure_)
    std::rethrow_exception(failure_);
  buffer = {};
  try {
    while (std::ssize(buffer.requests) < count && sentences_->next())
      if (format_.format == TextFormat::kJson && is_blank(sentences_->line()))
        ++blank_lines_;
      else
        add_sentence(buffer);
  } catch (const Error&) {
    if (buffer.requests.empty())
      throw;
    failure_ = std::current_exception();
  }
  return !buffer.requests.empty();
}

}  // namespace seqconv::internal::verbs
