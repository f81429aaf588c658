#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace seqconv::internal {

/// Counts how often each word comes in a text.
using WordCounts = std::unordered_map<std::string, int64_t>;

/// Adds the words of text, split at blanks, to `counts`. Lines end as in
/// split_lines; what ends one belongs to its last word, but for CR and LF.
void count_words(std::string_view text, WordCounts& counts);

/// Learns at most `merges` byte-pair merges and returns the text of the codes
/// file (version 0.2), byte for byte what subword-nmt's learn-bpe writes for
/// the same words. Learning stops at pairs rarer than `min_frequency`. Error
/// when no word has two characters.
std::string learn_bpe(const WordCounts& counts, int64_t merges, int64_t min_frequency = 2);

/// The same for text files, strictly read (see LineReader).
std::string learn_bpe(
    const std::vector<std::string>& files, int64_t merges, int64_t min_frequency = 2);

}  // namespace seqconv::internal
