#include "text/bpe_trainer.h"

#include <algorithm>

#include "base/characters.h"
#include "base/error.h"
#include "base/log.h"
#include "text/line_reader.h"
#include "text/pair_statistics.h"

namespace seqconv::internal {

namespace {

void count_words_of_one(std::string_view line, WordCounts& counts) {
  const size_t last = line.find_last_not_of("\r\n ") + 1;
  line = line.substr(0, last);
  line.remove_prefix(std::min(line.find_first_not_of("\r\n "), line.size()));
  for (size_t start = 0; start < line.size();) {
    const size_t blank = std::min(line.find(' ', start), line.size());
    if (blank > start)
      ++counts[std::string(line.substr(start, blank - start))];
    start = blank + 1;
  }
}

}  // namespace

void count_words(std::string_view text, WordCounts& counts) {
  for (std::string_view line : split_lines(text))
    count_words_of_one(line, counts);
}

std::string learn_bpe(const WordCounts& counts, int64_t merges, int64_t min_frequency) {
  SEQCONV_CHECK(merges >= 1, "BPE merges must be >= 1, but got ", merges);
  SEQCONV_CHECK(
      min_frequency >= 1,
      "the least frequency of a BPE pair must be >= 1, but got ",
      min_frequency);
  BpeVocabulary vocabulary(counts);
  PairStatistics statistics = vocabulary.count_pairs();
  SEQCONV_CHECK(
      !statistics.empty(),
      "BPE cannot be learned: none of the ",
      counts.size(),
      " different words has two characters");
  std::string codes = "#version: 0.2\n";
  for (int64_t i = 0; i < merges; ++i) {
    const PairStatistics::Best best = statistics.most_frequent(i);
    if (best.frequency < min_frequency) {
      log_warning(
          "BPE: no pair comes ",
          min_frequency,
          " times any more; ",
          i,
          " of ",
          merges,
          " merges learned");
      break;
    }
    codes += concat(vocabulary.text(best.pair.first), " ", vocabulary.text(best.pair.second), "\n");
    vocabulary.merge(best.pair, statistics);
    statistics.end_round(best.pair, i);
  }
  return codes;
}

std::string learn_bpe(
    const std::vector<std::string>& files, int64_t merges, int64_t min_frequency) {
  WordCounts counts;
  std::string line;
  for (const std::string& file : files) {
    LineReader reader(file);
    while (reader.next_with_end(line))
      count_words(line, counts);
  }
  return learn_bpe(counts, merges, min_frequency);
}

}  // namespace seqconv::internal
