#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "seqconv/requests.h"

namespace seqconv::internal {

/// The bytes of `text` that each of its tokens stands for. `surfaces`: the tokens as they
/// are written, without joiners and marks of blanks, in the text's order; incomplete
/// characters count with those beside them. White space belongs to none. Case,
/// compatible forms and what a tokenizer has changed otherwise may differ: what is not
/// found lies between its neighbours. Characters that a normalisation has dropped, however
/// many, belong to none, or to the token that they are inside. A token without text has an
/// empty range behind the one before. Takes time in proportion to the text.
std::vector<ByteRange> find_ranges(std::string_view text, const std::vector<std::string>& surfaces);

}  // namespace seqconv::internal
