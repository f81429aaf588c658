#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/requests.h"

namespace seqconv::internal {

/// Something that a document's text has to do with, and its bytes there.
struct HtmlEvent {
  enum class Kind {
    kText,
    kOpen,       ///< an inline element's start tag
    kClose,      ///< and its end tag
    kKept,       ///< a stretch with tags that stays as it is, in the middle of text
    kSeparator,  ///< other tags: text in front of them and behind has nothing in common
  };
  Kind kind = Kind::kText;
  ByteRange source;
  size_t element = 0;  ///< of tags: the same for both, which no others have
  std::string text;    ///< decoded
};

struct HtmlEvents {
  std::vector<HtmlEvent> events;      ///< in the order of the document; none overlap
  std::vector<HtmlEvent> attributes;  ///< values of alt and title, with their quotes
};

/// Reads an HTML document, or a part of one, as browsers do (html.h). Scripts, stray
/// tags and whatever else no event has separate too. Error for text that is not UTF-8, and for one
/// that nests tags deeper than `deepest`, before it is parsed.
HtmlEvents read_html(std::string_view html, int64_t deepest);

}  // namespace seqconv::internal
