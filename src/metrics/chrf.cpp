#include "seqconv/metrics/chrf.h"

#include <unordered_map>

#include "characters.h"
#include "ngrams.h"
#include "report.h"
#include "seqconv/base/error.h"

namespace seqconv {
namespace {

using metrics::NgramCount;

constexpr int kCharacterBits = 21;  // a code point
constexpr int kWordBits = 32;

bool is_ascii_punctuation(char32_t c) {
  return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') &&
      !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
}

/// Words, with one punctuation mark split off their end, or else their start.
std::vector<std::u32string> split_punctuation(std::u32string_view text) {
  std::vector<std::u32string> words;
  for (std::u32string_view word : metrics::split_words(text)) {
    const size_t last = word.size() - 1;
    if (last > 0 && is_ascii_punctuation(word[last])) {
      words.emplace_back(word.substr(0, last));
      words.emplace_back(word.substr(last));
    } else if (last > 0 && is_ascii_punctuation(word[0])) {
      words.emplace_back(word.substr(0, 1));
      words.emplace_back(word.substr(1));
    } else {
      words.emplace_back(word);
    }
  }
  return words;
}

/// N-grams of a line for each order. One object numbers the words of one
/// sentence and its references.
class NgramLists {
 public:
  explicit NgramLists(const ChrfOptions& options) : options_(options) {}

  std::vector<std::vector<NgramCount>> operator()(std::string_view line) {
    const std::u32string text = metrics::decode_utf8(
        options_.lowercase ? metrics::to_lower(line) : std::string(line));
    std::vector<uint32_t> characters;
    for (char32_t c : text)
      if (options_.whitespace || !metrics::is_space(c))
        characters.push_back(c);
    std::vector<std::vector<NgramCount>> lists;
    for (int64_t n = 1; n <= options_.char_order; ++n)
      lists.push_back(metrics::count_ngrams(
          characters,
          static_cast<size_t>(n),
          kCharacterBits));
    if (options_.word_order == 0)
      return lists;
    std::vector<uint32_t> words;
    for (std::u32string& word : split_punctuation(text)) {
      const auto next = static_cast<uint32_t>(numbers_.size());
      words.push_back(numbers_.emplace(std::move(word), next).first->second);
    }
    for (int64_t n = 1; n <= options_.word_order; ++n)
      lists.push_back(
          metrics::count_ngrams(words, static_cast<size_t>(n), kWordBits));
    return lists;
  }

 private:
  const ChrfOptions& options_;
  std::unordered_map<std::u32string, uint32_t> numbers_;
};

int64_t sum_counts(const std::vector<NgramCount>& ngrams) {
  int64_t sum = 0;
  for (const NgramCount& entry : ngrams)
    sum += entry.count;
  return sum;
}

}  // namespace

void ChrfOptions::validate(const std::string& path) const {
  const auto check =
      [&](const char* key, int64_t value, int64_t least, int64_t most) {
        if (value < least || value > most)
          fail_usage(
              path,
              ".",
              key,
              " must be from ",
              least,
              " to ",
              most,
              ", but got ",
              value);
      };
  check("char_order", char_order, 1, 6);
  check("word_order", word_order, 0, 4);
  check("beta", beta, 1, 100);
}

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  options_.validate();
  statistics_.resize(
      static_cast<size_t>(options_.char_order + options_.word_order));
}

void Chrf::add(
    std::string_view hypothesis,
    const std::vector<std::string>& references) {
  metrics::check_references(references.size(), references_);
  NgramLists lists(options_);
  const auto found = lists(hypothesis);
  std::vector<ChrfCounts> best;
  double best_score = -1;
  for (const std::string& reference : references) {
    const auto wanted = lists(reference);
    std::vector<ChrfCounts> counts(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      counts[i].reference = sum_counts(wanted[i]);
      counts[i].matched = metrics::count_matches(found[i], wanted[i]);
      // Orders that the reference is too short for do not count.
      counts[i].hypothesis = wanted[i].empty() ? 0 : sum_counts(found[i]);
    }
    if (const double score = f_score(counts); score > best_score) {
      best_score = score;
      best = std::move(counts);
    }
  }
  for (size_t i = 0; i < best.size(); ++i) {
    statistics_[i].hypothesis += best[i].hypothesis;
    statistics_[i].reference += best[i].reference;
    statistics_[i].matched += best[i].matched;
  }
}

double Chrf::f_score(const std::vector<ChrfCounts>& counts) const {
  double precision = 0;
  double recall = 0;
  int orders = 0;
  for (const ChrfCounts& order : counts) {
    if (order.hypothesis == 0 || order.reference == 0)
      continue;
    const auto matched = static_cast<double>(order.matched);
    precision += matched / static_cast<double>(order.hypothesis);
    recall += matched / static_cast<double>(order.reference);
    ++orders;
  }
  if (orders == 0)
    return 0;
  precision /= orders;
  recall /= orders;
  if (precision + recall == 0)
    return 0;
  const auto factor = static_cast<double>(options_.beta * options_.beta);
  return 100 *
      ((1 + factor) * precision * recall / (factor * precision + recall));
}

double Chrf::score() const {
  return f_score(statistics_);
}

std::string Chrf::name() const {
  return concat(
      "chrF",
      options_.beta,
      std::string(static_cast<size_t>(options_.word_order), '+'));
}

std::string Chrf::signature() const {
  return concat(
      "nrefs:",
      references_,
      "|case:",
      options_.lowercase ? "lc" : "mixed",
      "|eff:yes|nc:",
      options_.char_order,
      "|nw:",
      options_.word_order,
      "|space:",
      options_.whitespace ? "yes" : "no",
      "|",
      metrics::kVersionTag);
}

std::string Chrf::report(int decimals) const {
  return concat(
      name(),
      "|",
      signature(),
      " = ",
      metrics::fixed(score(), decimals));
}

Chrf corpus_chrf(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const ChrfOptions& options) {
  Chrf chrf(options);
  metrics::add_corpus(chrf, hypotheses, references);
  return chrf;
}

}  // namespace seqconv
