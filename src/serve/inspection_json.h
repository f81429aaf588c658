#pragma once

#include "base/json.h"
#include "runtime/sentence_probe.h"

namespace seqconv::internal {

/// The answer of POST /inspect: symbols, and what each layer looks at.
Json inspection_json(const SentenceProbe& found);

}  // namespace seqconv::internal
