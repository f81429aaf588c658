#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "seqconv/requests.h"
#include "serve/http_server.h"
#include "serve/options.h"
#include "text/markup/document.h"
#include "text/terminology.h"

namespace seqconv::internal {

/// The parameters of a request: of a JSON object, of a form and of the query, the body's first.
/// CallError 400 for JSON that is none or nested deeper than 64, 415 for other types of bodies.
Json read_parameters(const HttpRequest& request);

/// One parameter that is a text. CallError 400 for anything else.
/// `standard` where it is missing or null.
std::string text_parameter(
    const Json& parameters, const char* name, const std::string& standard = "");

/// The code points of UTF-8.
int64_t count_characters(std::string_view text);

/// A call of POST /translate or POST /detect.
struct TranslateCall {
  std::vector<std::string> texts;
  bool is_list = false;  ///< the answer is one too
  std::string source;    ///< a code or "auto"
  std::string target;
  DocumentFormat format = DocumentFormat::kText;
  int64_t alternatives = 0;
  bool wants_alignments = false;
  bool wants_notes = false;
  std::shared_ptr<const Terminology> terms{};  ///< null: none
  int64_t characters = 0;                      ///< of all texts
};

/// The texts of `q`: one, a list of JSON, or several fields of a form. CallError 400 if it is
/// missing, no text, too many or too long.
void read_texts(const Json& parameters, const ServeOptions& limits, TranslateCall& call);

/// CallError 400: the first that is missing of q, source, target; formats, numbers and terms that
/// are none.
TranslateCall read_translate_call(const Json& parameters, const ServeOptions& limits);

/// A call of POST /generate.
struct GenerateCall {
  std::string model;  ///< "": the only one
  GenerationRequest request;
  bool wants_stream = false;
};

/// CallError 400 for a prompt that is missing or too long, and numbers that are none.
GenerateCall read_generate_call(const Json& parameters, const ServeOptions& limits);

}  // namespace seqconv::internal
