#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace seqconv {

/// How often each word comes in a text.
using WordCounts = std::unordered_map<std::string, int64_t>;

/// Adds the words of a line, split at blanks, to `counts`.
void count_words(std::string_view line, WordCounts& counts);

/// Learns at most `merges` byte-pair merges and returns the text of the codes
/// file (version 0.2), byte for byte what subword-nmt's learn-bpe writes for
/// the same words. Learning stops at pairs rarer than `min_frequency`. Error
/// when no word has two characters.
std::string
learn_bpe(const WordCounts& counts, int64_t merges, int64_t min_frequency = 2);

/// The same for text files, strictly read (see LineReader).
std::string learn_bpe(
    const std::vector<std::string>& files,
    int64_t merges,
    int64_t min_frequency = 2);

}  // namespace seqconv
