#pragma once

#include "serve/http_server.h"

namespace seqconv::internal {

/// Answers GET / and GET /assets/NAME with a file of the page; 304 for one that the browser has,
/// 404 for others. The page loads nothing from elsewhere, and its policy allows nothing else.
HttpAnswer page_answer(const HttpRequest& request);

}  // namespace seqconv::internal
