#include "text/corpus/ibm_model1.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace seqconv::internal {
namespace {

/// What is less probable is dropped between iterations: it fills the memory,
/// and nobody lists it. The empty word drops nothing, so that every target word
/// has a source.
constexpr float kLeastProbability = 1e-6F;

}  // namespace

/// The iterations. They go through the source words, and for each one through
/// the pairs that hold it: its probabilities lie in one dense row meanwhile, so
/// that no table of word pairs is ever searched.
class IbmModel1Iterations {
 public:
  explicit IbmModel1Iterations(const IbmModel1& model)
      : target_(model.target_),
        words_(static_cast<size_t>(model.source_.words)),
        rows_(words_ + 1),
        dense_(static_cast<size_t>(target_.words)),
        counts_(dense_.size()),
        shares_(target_.ids.size()),
        sums_(shares_.size()) {
    find_pairs(model.source_);
    for (size_t word = 0; word <= words_; ++word)
      find_targets(word);
    // As if all had probability 1 so far: only ratios count.
    for (int64_t pair = 0; pair < model.pairs(); ++pair)
      std::fill_n(
          shares_.begin() + target_.begin[static_cast<size_t>(pair)],
          model.target(pair).size(),
          1.0F / static_cast<float>(model.source(pair).size() + 1));
  }

  void run() {
    for (size_t word = 0; word <= words_; ++word) {
      spread(word);
      count(word);
      gather(word);
      keep_probabilities(word);
      spread(word);
      add_to_sums(word);
      gather(word);
    }
    for (size_t j = 0; j < sums_.size(); ++j) {
      // A smaller sum has no float32 as its inverse.
      shares_[j] = sums_[j] >= std::numeric_limits<float>::min() ? 1 / sums_[j] : 0;
      sums_[j] = 0;
    }
  }

  /// Rows of source words, ascending.
  std::vector<std::vector<WordProbability>> take_rows() {
    rows_.pop_back();  // that of the empty word
    for (auto& row : rows_)
      std::ranges::sort(row, {}, &WordProbability::word);
    return std::move(rows_);
  }

 private:
  /// The pairs of each source word, one for each time that it comes.
  void find_pairs(const IbmModel1::Side& source) {
    begin_.assign(words_ + 1, 0);
    for (const int32_t id : source.ids)
      ++begin_[static_cast<size_t>(id) + 1];
    for (size_t word = 0; word < words_; ++word)
      begin_[word + 1] += begin_[word];
    std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
    pairs_.resize(source.ids.size());
    for (int64_t pair = 0; pair < source.count(); ++pair)
      for (const int32_t id : source.ids_of(pair))
        pairs_[static_cast<size_t>(next[static_cast<size_t>(id)]++)] = static_cast<int32_t>(pair);
  }

  /// Gives `take` the place of every target word beside a source word, in each
  /// of its pairs, and the word.
  template <class Take>
  void visit(size_t word, const Take& take) const {
    const auto visit_pair = [&](size_t pair) {
      const auto end = static_cast<size_t>(target_.begin[pair + 1]);
      for (auto j = static_cast<size_t>(target_.begin[pair]); j < end; ++j)
        take(j, static_cast<size_t>(target_.ids[j]));
    };
    if (word == words_)  // the empty word: everywhere
      for (size_t pair = 0; pair + 1 < target_.begin.size(); ++pair)
        visit_pair(pair);
    else
      for (int64_t i = begin_[word]; i < begin_[word + 1]; ++i)
        visit_pair(static_cast<size_t>(pairs_[static_cast<size_t>(i)]));
  }

  /// Its row before the first iteration.
  void find_targets(size_t word) {
    auto& row = rows_[word];
    visit(word, [&](size_t, size_t target) {
      if (dense_[target] == 0)
        row.push_back({static_cast<int32_t>(target), 1});
      dense_[target] = 1;
    });
    row.shrink_to_fit();
    gather(word);
  }

  /// The row of a word, dense until gather().
  void spread(size_t word) {
    for (const WordProbability& entry : rows_[word])
      dense_[static_cast<size_t>(entry.word)] = entry.probability;
  }
  void gather(size_t word) {
    for (const WordProbability& entry : rows_[word])
      dense_[static_cast<size_t>(entry.word)] = 0;
  }

  /// How often it translates into each word, by the present probabilities.
  void count(size_t word) {
    visit(word, [&](size_t j, size_t target) {
      counts_[target] += static_cast<double>(dense_[target] * shares_[j]);
    });
  }

  /// Counts become its row; no count is left.
  void keep_probabilities(size_t word) {
    std::vector<WordProbability>& row = rows_[word];
    double total = 0;
    for (const WordProbability& entry : row)
      total += counts_[static_cast<size_t>(entry.word)];
    for (WordProbability& entry : row) {
      double& own = counts_[static_cast<size_t>(entry.word)];
      entry.probability = total > 0 ? static_cast<float>(own / total) : 0;
      own = 0;
    }
    if (word == words_)
      return;
    const auto none = [](const WordProbability& entry) {
      return entry.probability < kLeastProbability;
    };
    if (std::erase_if(row, none) > 0)
      row.shrink_to_fit();
  }

  void add_to_sums(size_t word) {
    visit(word, [&](size_t j, size_t target) { sums_[j] += dense_[target]; });
  }

  const IbmModel1::Side& target_;
  const size_t words_;          // source words; then comes the empty one
  std::vector<int64_t> begin_;  // of the pairs of each source word
  std::vector<int32_t> pairs_;
  std::vector<std::vector<WordProbability>> rows_;
  // By target word, of one source word; 0 in between:
  std::vector<float> dense_;  // its row
  std::vector<double> counts_;
  // A number for each word of the target text: 1 over the sum of its
  // probabilities over the source words of its pair, and the sum to come.
  std::vector<float> shares_;
  std::vector<float> sums_;
};

void IbmModel1::Side::check(std::span<const int32_t> sentence, const char* name) const {
  SEQCONV_CHECK(
      !sentence.empty(),
      "both sides of a pair must have words to learn from, but the ",
      name,
      " has none");
  for (const int32_t id : sentence)
    SEQCONV_CHECK(
        id >= 0 && id < words, "ids of a ", name, " must be in [0, ", words, "), but got ", id);
}

void IbmModel1::Side::add(std::span<const int32_t> sentence) {
  ids.insert(ids.end(), sentence.begin(), sentence.end());
  begin.push_back(static_cast<int64_t>(ids.size()));
}

IbmModel1::IbmModel1(int64_t source_words, int64_t target_words) {
  source_.words = source_words;
  target_.words = target_words;
}

void IbmModel1::add(std::span<const int32_t> source, std::span<const int32_t> target) {
  source_.check(source, "source");
  target_.check(target, "target");
  SEQCONV_CHECK(
      pairs() < std::numeric_limits<int32_t>::max(),
      "at most ",
      std::numeric_limits<int32_t>::max(),
      " pairs can be learned from");
  source_.add(source);
  target_.add(target);
}

std::vector<std::vector<WordProbability>> IbmModel1::learn(int64_t iterations) const {
  IbmModel1Iterations work(*this);
  for (int64_t i = 0; i < iterations; ++i)
    work.run();
  return work.take_rows();
}

}  // namespace seqconv::internal
