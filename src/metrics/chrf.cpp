#include "metrics/chrf.h"

#include <algorithm>
#include <span>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "metrics/character_numbers.h"
#include "metrics/ngrams.h"
#include "metrics/report.h"
#include "metrics/word_numbers.h"

namespace seqconv::internal {
namespace {

using metrics::SortedNgrams;
using Symbols = std::vector<uint32_t>;

bool is_ascii_punctuation(char c) {
  return c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
      !(c >= 'a' && c <= 'z');
}

/// Words, with one punctuation mark split off their end, or else their start.
std::vector<std::string_view> split_punctuation(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view word : split_words(text)) {
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

/// Lines as numbers: the hypothesis, then its references.
struct NumberedLines {
  std::vector<Symbols> characters;
  std::vector<Symbols> words;
  metrics::CharacterNumbers character_numbers{};
  metrics::WordNumbers word_numbers{};
};

void add_line(std::string_view line, const ChrfOptions& options, NumberedLines& lines) {
  const std::string& text =
      lines.word_numbers.keep(options.lowercase ? to_lower(line) : replace_invalid_utf8(line));
  Symbols& characters = lines.characters.emplace_back();
  characters.reserve(text.size());
  for (char32_t c : decode_utf8(text))
    if (options.whitespace || !is_space(c))
      characters.push_back(lines.character_numbers.of(c));
  if (options.word_order > 0)
    lines.words.push_back(lines.word_numbers.of_words(split_punctuation(text)));
}

template <class Ngram>
ChrfCounts count_order(
    const SortedNgrams<Ngram>& found, const SortedNgrams<Ngram>& wanted, size_t n) {
  ChrfCounts counts;
  counts.reference = wanted.total(n);
  counts.matched = found.common(wanted, n);
  // Orders that the reference is too short for do not count.
  counts.hypothesis = counts.reference == 0 ? 0 : found.total(n);
  return counts;
}

template <class Ngram>
void append_counts(
    const std::vector<Symbols>& lines,
    size_t orders,
    int bits,
    std::vector<std::vector<ChrfCounts>>& counts) {
  std::vector<SortedNgrams<Ngram>> sorted;
  for (const Symbols& line : lines)
    sorted.emplace_back(line, orders, bits);
  for (size_t i = 1; i < sorted.size(); ++i)
    for (size_t n = 1; n <= orders; ++n)
      counts[i - 1].push_back(count_order(sorted[0], sorted[i], n));
}

/// Appends the counts of all orders for each reference, counts [reference], of
/// lines of numbers below `symbols`.
void append_counts(
    const std::vector<Symbols>& lines,
    int64_t orders,
    uint32_t symbols,
    std::vector<std::vector<ChrfCounts>>& counts) {
  const int bits = metrics::bits_of_symbols(symbols);
  if (orders * bits <= 64)
    append_counts<uint64_t>(lines, static_cast<size_t>(orders), bits, counts);
  else
    append_counts<unsigned __int128>(lines, static_cast<size_t>(orders), bits, counts);
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

void ChrfOptions::validate(const OptionNames& names) const {
  const auto check = [&](const char* key, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most)
      fail_usage(names(key), " must be from ", least, " to ", most, ", but got ", value);
  };
  check("char_order", char_order, 1, 6);
  check("word_order", word_order, 0, 4);
  check("beta", beta, 1, 100);
}

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  options_.validate();
  statistics_.resize(static_cast<size_t>(options_.char_order + options_.word_order));
}

std::vector<ChrfCounts> Chrf::count(
    std::string_view hypothesis, const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  NumberedLines lines;
  add_line(hypothesis, options_, lines);
  for (const std::string& reference : references)
    add_line(reference, options_, lines);
  std::vector<std::vector<ChrfCounts>> counts(references.size());
  append_counts(lines.characters, options_.char_order, lines.character_numbers.count(), counts);
  append_counts(lines.words, options_.word_order, lines.word_numbers.count(), counts);
  size_t best = 0;
  double best_score = -1;
  for (size_t i = 0; i < counts.size() && counts.size() > 1; ++i) {
    const std::vector<double> sums = numbers(counts[i]);
    if (const double score = f_score(std::span(sums), options_); score > best_score) {
      best_score = score;
      best = i;
    }
  }
  return std::move(counts[best]);
}

std::vector<ChrfCounts> Chrf::add(
    std::string_view hypothesis, const std::vector<std::string>& references) {
  std::vector<ChrfCounts> counts = count(hypothesis, references);
  add_counts(counts, references.size());
  return counts;
}

void Chrf::add_counts(const std::vector<ChrfCounts>& counts, size_t references) {
  metrics::check_references(references, references_);
  for (size_t i = 0; i < counts.size(); ++i) {
    statistics_[i].hypothesis += counts[i].hypothesis;
    statistics_[i].reference += counts[i].reference;
    statistics_[i].matched += counts[i].matched;
  }
}

std::vector<double> Chrf::numbers(const std::vector<ChrfCounts>& counts) {
  std::vector<double> numbers;
  for (const ChrfCounts& order : counts)
    for (int64_t number : {order.hypothesis, order.reference, order.matched})
      numbers.push_back(static_cast<double>(number));
  return numbers;
}

std::vector<ChrfCounts> Chrf::of_numbers(std::span<const double> numbers) {
  const auto number = [&](size_t i) { return static_cast<int64_t>(numbers[i]); };
  std::vector<ChrfCounts> counts;
  for (size_t i = 0; i + 2 < numbers.size(); i += 3)
    counts.push_back({number(i), number(i + 1), number(i + 2)});
  return counts;
}

double Chrf::score() const {
  const std::vector<double> sums = numbers(statistics_);
  return f_score(std::span(sums), options_);
}

ScoreOfSums Chrf::score_of_sums() const {
  const ChrfOptions options = options_;
  return {
      .exact = [options](std::span<const double> sums) { return f_score(sums, options); },
      .single =
          [options](std::span<const float> sums) {
            const float score = f_score(sums, options);
            return SampleScore{score, score > 0};
          }};
}

std::string Chrf::name() const {
  return concat("chrF", options_.beta, std::string(static_cast<size_t>(options_.word_order), '+'));
}

std::string Chrf::signature() const {
  return concat(
      "nrefs:",
      metrics::references_text(references_),
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
  return concat(name(), "|", signature(), " = ", metrics::fixed(score(), decimals));
}

Chrf corpus_chrf(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const ChrfOptions& options) {
  Chrf chrf(options);
  metrics::add_corpus(chrf, hypotheses, references);
  return chrf;
}

}  // namespace seqconv::internal
