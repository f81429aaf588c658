#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/requests.h"

namespace seqconv::internal {

/// An element within a run of text, such as <b> or a link.
struct InlineElement {
  ByteRange text;        ///< of the run's text; empty where it has none, as <img>
  int64_t parent = -1;   ///< number of the element around it, a lower one; -1: none
  bool is_kept = false;  ///< its text comes back as it stands in the source: <code>
  ByteRange open;        ///< of the source: its start tag; all of it if it is kept
  ByteRange close;       ///< of the source: its end tag, if it has one
};

/// Bytes of a text and those of its translation that belong together.
struct AlignedRanges {
  ByteRange source;
  ByteRange target;
};

/// A translation of a run of text.
struct RunTranslation {
  std::string text;
  std::vector<AlignedRanges> aligned;
};

/// The part of the translation that each element goes around: ranges of its bytes that nest as
/// the elements do, and never overlap otherwise. An element takes the words that are aligned with
/// its own, one stretch with the most of these and the fewest others; one without stands behind
/// the word that the one in front of it became. Words are not cut.
std::vector<ByteRange> place_elements(
    std::string_view source,
    const std::vector<InlineElement>& elements,
    const RunTranslation& translation);

}  // namespace seqconv::internal
