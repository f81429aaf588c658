#pragma once

#include <string_view>
#include <vector>

#include "pipeline/request.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// The ids of a request's text, `what` ("a line"), with the pieces that `slots` carry; Error for
/// one that is not UTF-8.
std::vector<int32_t> encode_text(
    const TextPipeline& text, std::string_view line, const Slots& slots, const char* what);

/// The ids of tokens as the vocabulary spells them, slots too, <unk> for others. A last </s> is
/// left out.
std::vector<int32_t> token_ids(
    const Vocabulary& vocabulary, const std::vector<std::string>& tokens);

/// Drops the bytes at a text's end that may be a part of a character.
void drop_incomplete_end(std::string& text);

/// The text of ids to which more may come: whole characters, in valid UTF-8.
std::string decode_whole(
    const TextPipeline& text, const std::vector<int32_t>& ids, const Slots& slots = {});

}  // namespace seqconv::internal
