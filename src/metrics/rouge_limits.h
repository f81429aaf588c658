#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The beginnings of texts that ROUGE-1.5.5 looks at with a limit; lines are
/// sentences.
namespace seqconv::internal::metrics {

/// The first words, as white space separates them (-l). White space at the
/// start of a sentence counts as a word, as there.
std::string first_words(std::string_view text, int64_t limit);

/// The first bytes, ends of lines not counted (-b).
std::string first_bytes(std::string_view text, int64_t limit);

/// What its ROUGE-L compares with -b: whole sentences up to the first one that
/// has as many bytes as the limit, and so many bytes of that one.
std::string first_whole_sentences(std::string_view text, int64_t limit);

}  // namespace seqconv::internal::metrics
