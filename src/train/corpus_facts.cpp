#include "train/corpus_facts.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/corpus/fairseq_data.h"
#include "train/prepared_data.h"

namespace seqconv::internal {
namespace {

constexpr double kCoverage = 0.9995;
/// Fewer samples in order are so by chance.
constexpr int64_t kLeastSorted = 100;

/// Counts of a side.
struct SideCounts {
  int64_t samples = 0;
  int64_t characters = 0;
  int64_t words = 0;
  bool is_sorted = true;
  bool has_ids = false;
  int64_t lines = 0;  // without text too
  int64_t last = 0;   // characters of the last sample

  void add(int64_t characters_of_it, int64_t words_of_it) {
    ++samples;
    characters += characters_of_it;
    words += words_of_it;
    is_sorted = is_sorted && characters_of_it >= last;
    last = characters_of_it;
  }
};

/// Counts of each character.
class Alphabet {
 public:
  int64_t add(std::string_view line) {
    int64_t characters = 0;
    for (size_t at = 0; at < line.size(); ++characters) {
      const char32_t c = next_code_point(line, at);
      if (c < first_.size())
        ++first_[c];
      else
        ++others_[c];
    }
    return characters;
  }

  /// The most frequent ones that make up kCoverage of all.
  int64_t size() const {
    std::vector<int64_t> counts(first_.begin(), first_.end());
    for (const auto& [character, count] : others_)
      counts.push_back(count);
    std::ranges::sort(counts, std::greater());
    int64_t all = 0;
    for (const int64_t count : counts)
      all += count;
    int64_t size = 0;
    for (int64_t seen = 0; static_cast<double>(seen) < kCoverage * static_cast<double>(all);)
      seen += counts[static_cast<size_t>(size++)];
    return size;
  }

 private:
  std::vector<int64_t> first_ = std::vector<int64_t>(0x3000);
  std::map<char32_t, int64_t> others_;
};

void count_ids(const TextSource& file, SideCounts& counts) {
  const auto sentences = open_fairseq_data(file.file, std::numeric_limits<int32_t>::max());
  for (int64_t i = 0; i < sentences->size(); ++i)
    counts.add(sentences->length(i), sentences->length(i));
  counts.has_ids = true;
}

SideCounts count_side(const std::vector<TextSource>& files, Alphabet& alphabet) {
  SideCounts counts;
  std::string line;
  for (const TextSource& file : files) {
    if (holds_ids(file)) {
      count_ids(file, counts);
      continue;
    }
    TextSourceReader reader(file);
    while (reader.next(line)) {
      stop_preparing_if_asked();
      if (const auto words = static_cast<int64_t>(split_words(line).size()); words > 0)
        counts.add(alphabet.add(line), words);
    }
    counts.lines += reader.line_number();
  }
  return counts;
}

}  // namespace

double CorpusFacts::word_length() const {
  const int64_t words = source_words + target_words;
  const int64_t characters = source_characters + target_characters;
  return words == 0 ? 0 : static_cast<double>(characters) / static_cast<double>(words);
}

CorpusFacts measure_corpus(const TrainConfig& config) {
  const bool is_pairs = config.task == Task::kTranslation;
  const PairSources pairs =
      is_pairs ? config.data.training_pairs() : PairSources{{}, config.data.training_text()};
  Alphabet alphabet;
  const SideCounts source = count_side(pairs.source, alphabet);
  const SideCounts target = count_side(pairs.target, alphabet);
  SEQCONV_CHECK(
      !is_pairs || source.lines == target.lines,
      "parallel files must have the same number of lines, but the sources have ",
      source.lines,
      " and the targets ",
      target.lines);
  const SideCounts& first = is_pairs ? source : target;
  SEQCONV_CHECK(target.samples > 0 && first.samples > 0, "the training text has no text");
  return {
      .samples = is_pairs ? std::min(source.samples, target.samples) : target.samples,
      .source_characters = source.characters,
      .target_characters = target.characters,
      .source_words = source.words,
      .target_words = target.words,
      .alphabet = alphabet.size(),
      .is_sorted = is_pairs && first.is_sorted && first.samples >= kLeastSorted,
      .has_ids = source.has_ids || target.has_ids};
}

}  // namespace seqconv::internal
