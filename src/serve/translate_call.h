#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/http_server.h"
#include "text/markup/document.h"

namespace seqconv::internal {

/// A request that makes no sense, or is not allowed: its answer is {"error": …}.
class CallError : public std::runtime_error {
 public:
  CallError(unsigned status, const std::string& text)
      : std::runtime_error(text), status_(status) {}
  unsigned status() const { return status_; }

 private:
  unsigned status_;
};

/// {"error": …} with the status.
HttpAnswer error_answer(unsigned status, const std::string& text);

/// The parameters of a request: of a JSON object, of a form and of the query, the body's first.
/// CallError 400 for JSON that is none or nested deeper than 64, 415 for other types of bodies.
Json read_parameters(const HttpRequest& request);

/// One parameter as text; a number as it is written. CallError 400 for lists and objects.
/// `standard` where it is missing or null.
std::string text_parameter(
    const Json& parameters, const char* name, const std::string& standard = "");

struct CallLimits {
  int64_t characters = 100'000;  ///< of all texts of a request
  int64_t items = 1'000;
  int64_t alternatives = 10;
};

/// What POST /translate and POST /detect are asked.
struct TranslateCall {
  std::vector<std::string> texts;
  bool is_list = false;  ///< the answer is one too
  std::string source;    ///< a code or "auto"
  std::string target;
  DocumentFormat format = DocumentFormat::kText;
  int64_t alternatives = 0;
  bool wants_stream = false;
};

/// The texts of `q`: one, a list of JSON, or several fields of a form. CallError 400 if it is
/// missing, no text, too many or too long.
void read_texts(const Json& parameters, const CallLimits& limits, TranslateCall& call);

/// CallError 400: the first that is missing of q, source, target; formats and numbers that are
/// none.
TranslateCall read_translate_call(const Json& parameters, const CallLimits& limits);

}  // namespace seqconv::internal
