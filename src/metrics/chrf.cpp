#include "seqconv/metrics/chrf.h"

#include <algorithm>
#include <span>

#include "characters.h"
#include "ngrams.h"
#include "report.h"
#include "seqconv/base/error.h"
#include "word_numbers.h"

namespace seqconv {
namespace {

using metrics::SortedNgrams;
using metrics::WordNumbers;

constexpr int kCharacterBits = 21;  // a code point
constexpr int kWordBits = 32;

bool is_ascii_punctuation(char c) {
  return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') &&
      !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
}

/// Words, with one punctuation mark split off their end, or else their start.
std::vector<std::string_view> split_punctuation(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view word : metrics::split_words(text)) {
    const size_t last = word.size() - 1;
    size_t split = 0;
    if (last > 0 && is_ascii_punctuation(word[last]))
      split = last;
    else if (last > 0 && is_ascii_punctuation(word[0]))
      split = 1;
    if (split > 0)
      words.push_back(word.substr(0, split));
    words.push_back(word.substr(split));
  }
  return words;
}

/// The n-grams of one line.
struct LineNgrams {
  SortedNgrams characters;
  SortedNgrams words;
};

LineNgrams list_ngrams(
    std::string_view line,
    const ChrfOptions& options,
    WordNumbers& numbers) {
  const std::string& text = numbers.keep(
      options.lowercase ? metrics::to_lower(line) : metrics::valid_utf8(line));
  std::vector<uint32_t> characters;
  for (char32_t c : metrics::decode_utf8(text))
    if (options.whitespace || !metrics::is_space(c))
      characters.push_back(c);
  std::vector<uint32_t> words;
  if (options.word_order > 0)
    for (std::string_view word : split_punctuation(text))
      words.push_back(numbers.of_word(word));
  const auto orders = [](int64_t order) {
    return static_cast<size_t>(std::max<int64_t>(1, order));
  };
  return {
      SortedNgrams(characters, orders(options.char_order), kCharacterBits),
      SortedNgrams(words, orders(options.word_order), kWordBits)};
}

ChrfCounts
count_order(const SortedNgrams& found, const SortedNgrams& wanted, size_t n) {
  ChrfCounts counts;
  counts.reference = wanted.total(n);
  counts.matched = metrics::count_matches(found, {&wanted, 1}, n);
  // Orders that the reference is too short for do not count.
  counts.hypothesis = counts.reference == 0 ? 0 : found.total(n);
  return counts;
}

/// From 0 to 100. `sums` are three numbers for each order, as of numbers(); all
/// is computed in their precision.
template <class Real>
Real f_score(std::span<const Real> sums, const ChrfOptions& options) {
  constexpr auto kTiny = static_cast<Real>(1e-16);
  const auto factor = static_cast<Real>(options.beta * options.beta);
  const auto f = [factor](Real precision, Real recall) {
    return (1 + factor) * precision * recall / (factor * precision + recall);
  };
  Real precision_sum = 0;
  Real recall_sum = 0;
  Real f_sum = 0;
  Real orders = 0;
  for (size_t i = 0; i < sums.size(); i += 3) {
    const Real hypothesis = sums[i];
    const Real reference = sums[i + 1];
    const Real matched = sums[i + 2];
    const Real precision = hypothesis > 0 ? matched / hypothesis : kTiny;
    const Real recall = reference > 0 ? matched / reference : kTiny;
    f_sum += precision + recall > 0 ? f(precision, recall) : kTiny;
    if (hypothesis > 0 && reference > 0) {
      precision_sum += precision;
      recall_sum += recall;
      ++orders;
    }
  }
  if (options.eps_smoothing)
    return 100 * f_sum / static_cast<Real>(sums.size() / 3);
  if (precision_sum + recall_sum == 0)
    return 0;
  return 100 * f(precision_sum / orders, recall_sum / orders);
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

std::vector<ChrfCounts> Chrf::count(
    std::string_view hypothesis,
    const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  WordNumbers words;
  const LineNgrams found = list_ngrams(hypothesis, options_, words);
  std::vector<ChrfCounts> best;
  double best_score = -1;
  for (const std::string& reference : references) {
    const LineNgrams wanted = list_ngrams(reference, options_, words);
    std::vector<ChrfCounts> counts;
    for (int64_t n = 1; n <= options_.char_order; ++n)
      counts.push_back(count_order(
          found.characters,
          wanted.characters,
          static_cast<size_t>(n)));
    for (int64_t n = 1; n <= options_.word_order; ++n)
      counts.push_back(
          count_order(found.words, wanted.words, static_cast<size_t>(n)));
    const std::vector<double> sums = numbers(counts);
    if (const double score = f_score(std::span(sums), options_);
        score > best_score) {
      best_score = score;
      best = std::move(counts);
    }
  }
  return best;
}

std::vector<ChrfCounts> Chrf::add(
    std::string_view hypothesis,
    const std::vector<std::string>& references) {
  metrics::check_references(references.size(), references_);
  const std::vector<ChrfCounts> counts = count(hypothesis, references);
  for (size_t i = 0; i < counts.size(); ++i) {
    statistics_[i].hypothesis += counts[i].hypothesis;
    statistics_[i].reference += counts[i].reference;
    statistics_[i].matched += counts[i].matched;
  }
  return counts;
}

std::vector<double> Chrf::numbers(const std::vector<ChrfCounts>& counts) {
  std::vector<double> numbers;
  for (const ChrfCounts& order : counts)
    for (int64_t number : {order.hypothesis, order.reference, order.matched})
      numbers.push_back(static_cast<double>(number));
  return numbers;
}

double Chrf::score() const {
  const std::vector<double> sums = numbers(statistics_);
  return f_score(std::span(sums), options_);
}

ScoreOfSums Chrf::score_of_sums() const {
  const ChrfOptions options = options_;
  return {
      .exact =
          [options](std::span<const double> sums) {
            return f_score(sums, options);
          },
      .single =
          [options](std::span<const float> sums) {
            const float score = f_score(sums, options);
            return SampleScore{score, score > 0};
          }};
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
      options_.eps_smoothing ? "|eff:no|nc:" : "|eff:yes|nc:",
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
