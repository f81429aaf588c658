#include <algorithm>

#include "base/special_ids.h"
#include "base/utf8.h"
#include "pipeline/request_text.h"
#include "runtime/api/arguments.h"
#include "runtime/api/model.h"

/// Texts to tokens and back.
namespace api = seqconv::internal;

namespace {

/// The tokens of a text. Between lines of a language model stands </s>.
std::vector<std::string> tokens_of(
    const seqconv_model& model, const api::TextPipeline& side, std::string_view text) {
  std::vector<std::string> tokens;
  const bool has_lines = model.info().task == SEQCONV_TASK_LANGUAGE_MODEL;
  for (size_t begin = 0;;) {
    const size_t end = has_lines ? text.find('\n', begin) : std::string_view::npos;
    for (std::string& token : side.segment(text.substr(begin, end - begin)))
      tokens.push_back(std::move(token));
    if (end == std::string_view::npos)
      return tokens;
    tokens.emplace_back(api::kSpecialSymbols[api::kEndId]);
    begin = end + 1;
  }
}

/// Tokens between </s> are a line of a language model.
std::string text_of(
    const seqconv_model& model,
    const api::TextPipeline& side,
    const std::vector<std::string>& tokens) {
  const bool has_lines = model.info().task == SEQCONV_TASK_LANGUAGE_MODEL;
  const std::string end(api::kSpecialSymbols[api::kEndId]);
  std::string text;
  for (auto begin = tokens.begin(); begin != tokens.end();) {
    auto last = has_lines ? std::find(begin, tokens.end(), end) : tokens.end();
    text += side.decode(api::token_ids(side.vocabulary(), {begin, last}));
    if (last != tokens.end()) {
      text += '\n';
      ++last;
    }
    begin = last;
  }
  return api::replace_invalid_utf8(text);
}

}  // namespace

extern "C" {

seqconv_status seqconv_tokenize(
    const seqconv_model* model, int32_t side, seqconv_text text, seqconv_result** result) {
  return api::guarded(SEQCONV_INVALID, [&] {
    seqconv_result*& place = api::required(result, "result");
    const api::TextPipeline& own = api::required(model, "model").text(side);
    const std::string_view given = api::read_text(text, "text");
    const size_t at = api::find_invalid_utf8(given);
    SEQCONV_CHECK(at == std::string_view::npos, "a text must be UTF-8, but is not at byte ", at);
    seqconv::GenerationResult tokens;
    tokens.tokens = tokens_of(*model, own, given);
    place = api::make_result(std::move(tokens)).release();
  });
}

seqconv_status seqconv_detokenize(
    const seqconv_model* model,
    int32_t side,
    const seqconv_text* tokens,
    int64_t count,
    seqconv_result** result) {
  return api::guarded(SEQCONV_INVALID, [&] {
    seqconv_result*& place = api::required(result, "result");
    const api::TextPipeline& own = api::required(model, "model").text(side);
    seqconv::GenerationResult text;
    text.text = text_of(*model, own, api::read_texts(tokens, count, "tokens"));
    place = api::make_result(std::move(text)).release();
  });
}

}  // extern "C"
