#pragma once

#include <filesystem>

#include "base/json.h"
#include "search/search.h"

namespace seqconv::internal {

/// The table `decoding` of config.json.
Json decoding_table(const DecodingOptions& decoding);

/// Writes it into the config.json of a translation model, of which everything
/// else stays; nothing is written where it says the same already.
void write_decoding(const std::filesystem::path& folder, const DecodingOptions& decoding);

}  // namespace seqconv::internal
