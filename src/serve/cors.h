#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/http_server.h"

namespace seqconv::internal {

/// The exchange, whose answers let pages of these origins read them ("*": of any; none: no word
/// of it), and no browser guess at their types. Credentials are never allowed: keys are
/// parameters.
std::shared_ptr<HttpExchange> with_origins(
    std::shared_ptr<HttpExchange> exchange, const std::vector<std::string>& origins);

}  // namespace seqconv::internal
