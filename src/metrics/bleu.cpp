#include "seqconv/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "characters.h"
#include "ngrams.h"
#include "report.h"
#include "seqconv/base/error.h"
#include "seqconv/base/special_ids.h"
#include "space_tokens.h"
#include "word_numbers.h"

namespace seqconv {
namespace {

using metrics::fixed;
using metrics::SortedNgrams;

constexpr int kTokenBits = 32;

/// The length nearest to the hypothesis's; of two, the smaller one.
int64_t nearest_length(
    int64_t hypothesis,
    const std::vector<std::vector<uint32_t>>& references) {
  int64_t best = std::numeric_limits<int64_t>::max();
  int64_t best_distance = best;
  for (const auto& reference : references) {
    const auto length = static_cast<int64_t>(reference.size());
    const int64_t distance = std::abs(hypothesis - length);
    if (std::pair(distance, length) < std::pair(best_distance, best)) {
      best = length;
      best_distance = distance;
    }
  }
  return best;
}

BleuStatistics count_sentence(
    const std::vector<uint32_t>& hypothesis,
    const std::vector<std::vector<uint32_t>>& references) {
  BleuStatistics statistics;
  statistics.hypothesis_length = static_cast<int64_t>(hypothesis.size());
  statistics.reference_length =
      nearest_length(statistics.hypothesis_length, references);
  const auto sort = [](const std::vector<uint32_t>& numbers) {
    return SortedNgrams(numbers, BleuStatistics::kOrder, kTokenBits);
  };
  const SortedNgrams found = sort(hypothesis);
  std::vector<SortedNgrams> allowed;
  for (const auto& reference : references)
    allowed.push_back(sort(reference));
  for (size_t n = 1; n <= BleuStatistics::kOrder; ++n) {
    statistics.correct[n - 1] = metrics::count_matches(found, allowed, n);
    statistics.total[n - 1] = found.total(n);
  }
  return statistics;
}

/// BLEU of BleuStatistics::numbers() or sums of them. Precisions are computed
/// in the precision of the sums, the rest in double.
template <class Real>
BleuScore score_numbers(std::span<const Real> sums, BleuSmoothing smoothing) {
  constexpr size_t kOrder = BleuStatistics::kOrder;
  const std::span<const Real> correct = sums.subspan(2, kOrder);
  const std::span<const Real> total = sums.subspan(2 + kOrder, kOrder);
  const auto hypothesis = static_cast<double>(sums[0]);
  const auto reference = static_cast<double>(sums[1]);
  BleuScore result;
  result.ratio = reference > 0 ? hypothesis / reference : 0;
  result.brevity_penalty = 1;
  if (hypothesis < reference)
    result.brevity_penalty =
        hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  const auto matched = [](Real n) { return n > 0; };
  if (std::none_of(correct.begin(), correct.end(), matched))
    return result;
  Real share = 1;
  double sum = 0;
  for (size_t n = 0; n < kOrder; ++n) {
    double& precision = result.precisions[n];
    if (total[n] == 0)
      return result;  // hypotheses too short for n-grams: BLEU is 0
    if (correct[n] > 0) {
      precision = 100 * correct[n] / total[n];
    } else if (smoothing == BleuSmoothing::kExp) {
      share *= 2;
      precision = 100 / (share * total[n]);
    }
    sum += std::log(precision);
  }
  result.score = result.brevity_penalty * std::exp(sum / kOrder);
  return result;
}

std::string precision_list(const BleuScore& score) {
  std::string list;
  for (double precision : score.precisions)
    list += concat(list.empty() ? "" : "/", fixed(precision, 1));
  return list;
}

}  // namespace

void BleuOptions::validate(const std::string& path) const {
  const auto reject = [&](const char* key, const char* style_name) {
    fail_usage(
        path,
        ".",
        key,
        " has no effect with ",
        path,
        ".style = '",
        style_name,
        "'");
  };
  if (tokenizer == BleuTokenizer::kJaMecab)
    fail_usage(
        path,
        ".tokenizer = 'ja-mecab' needs a build with MeCab, which this one is "
        "not; 'spm' and 'char' suit Japanese, too");
  const BleuOptions defaults;
  if (style == BleuStyle::kSacreBleu) {
    if (compound_split)
      reject("compound_split", "sacrebleu");
    return;
  }
  if (tokenizer != defaults.tokenizer && tokenizer != BleuTokenizer::kNone)
    reject("tokenizer", "multi-bleu");
}

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  for (size_t n = 0; n < kOrder; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

std::vector<double> BleuStatistics::numbers() const {
  std::vector<double> numbers = {
      static_cast<double>(hypothesis_length),
      static_cast<double>(reference_length)};
  numbers.insert(numbers.end(), correct.begin(), correct.end());
  numbers.insert(numbers.end(), total.begin(), total.end());
  return numbers;
}

BleuScore compute_bleu(
    const BleuStatistics& statistics,
    BleuSmoothing smoothing) {
  const std::vector<double> numbers = statistics.numbers();
  BleuScore score = score_numbers(std::span(numbers), smoothing);
  score.statistics = statistics;
  return score;
}

Bleu::Bleu(const BleuOptions& options, LineTokenizer tokenizer)
    : options_(options), tokenizer_(std::move(tokenizer)) {
  options_.validate();
  if (options_.tokenizer == BleuTokenizer::kSpm && !tokenizer_.split)
    fail_usage("bleu.tokenizer = 'spm' needs a SentencePiece model");
  if (options_.style == BleuStyle::kMultiBleu) {
    options_.tokenizer = BleuTokenizer::kNone;
    options_.smoothing = BleuSmoothing::kNone;
  }
}

std::string Bleu::prepare(std::string_view line) const {
  std::string text =
      options_.lowercase ? metrics::to_lower(line) : std::string(line);
  if (options_.compound_split)
    text = split_compounds(text);
  if (options_.tokenizer != BleuTokenizer::kSpm)
    return metrics::space_tokens(text, options_.tokenizer);
  std::string tokens;
  for (const std::string& token :
       tokenizer_.split(metrics::valid_utf8(metrics::trim_end(text))))
    (tokens += token) += ' ';
  return tokens;
}

BleuStatistics Bleu::count(
    std::string_view hypothesis,
    const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  metrics::WordNumbers numbers;
  const std::vector<uint32_t> found = numbers.of_text(prepare(hypothesis));
  std::vector<std::vector<uint32_t>> allowed;
  for (const std::string& reference : references)
    allowed.push_back(numbers.of_text(prepare(reference)));
  if (options_.style == BleuStyle::kMultiBleu) {
    const uint32_t unknown = numbers.of_word(kUnknownSymbol);
    const uint32_t nothing = numbers.of_word("");  // no hypothesis has it
    for (std::vector<uint32_t>& reference : allowed)
      std::replace(reference.begin(), reference.end(), unknown, nothing);
  }
  return count_sentence(found, allowed);
}

BleuStatistics Bleu::add(
    std::string_view hypothesis,
    const std::vector<std::string>& references) {
  metrics::check_references(references.size(), references_);
  const BleuStatistics counts = count(hypothesis, references);
  statistics_ += counts;
  return counts;
}

BleuScore Bleu::score() const {
  return compute_bleu(statistics_, options_.smoothing);
}

std::string Bleu::signature() const {
  const char* letters = options_.lowercase ? "lc" : "mixed";
  if (options_.style == BleuStyle::kMultiBleu)
    return concat(
        "nrefs:",
        references_,
        "|case:",
        letters,
        "|style:multi-bleu|split:",
        options_.compound_split ? "yes" : "no",
        "|",
        metrics::kVersionTag);
  return concat(
      "nrefs:",
      references_,
      "|case:",
      letters,
      "|eff:no|tok:",
      tokenizer_.split ? tokenizer_.name : enum_name(options_.tokenizer),
      "|smooth:",
      enum_name(options_.smoothing),
      "|",
      metrics::kVersionTag);
}

ScoreOfSums Bleu::score_of_sums() const {
  const BleuSmoothing smoothing = options_.smoothing;
  return {
      .exact =
          [smoothing](std::span<const double> sums) {
            return score_numbers(sums, smoothing).score;
          },
      .single =
          [smoothing](std::span<const float> sums) {
            return SampleScore{.score = score_numbers(sums, smoothing).score};
          }};
}

std::string Bleu::report(int decimals) const {
  const BleuScore result = score();
  const std::string bleu = fixed(result.score, decimals);
  const std::string penalty = fixed(result.brevity_penalty, 3);
  const std::string ratio = fixed(result.ratio, 3);
  const int64_t hypothesis = statistics_.hypothesis_length;
  const int64_t reference = statistics_.reference_length;
  if (options_.style == BleuStyle::kMultiBleu)
    return concat(
        "BLEU4 = ",
        bleu,
        ", ",
        precision_list(result),
        concat(" (BP=", penalty, ", ratio=", ratio),
        concat(", syslen=", hypothesis, ", reflen=", reference, ")"));
  return concat(
      "BLEU|",
      signature(),
      " = ",
      bleu,
      " ",
      precision_list(result),
      concat(" (BP = ", penalty, " ratio = ", ratio),
      concat(" hyp_len = ", hypothesis, " ref_len = ", reference, ")"));
}

Bleu corpus_bleu(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const BleuOptions& options,
    LineTokenizer tokenizer) {
  Bleu bleu(options, std::move(tokenizer));
  metrics::add_corpus(bleu, hypotheses, references);
  return bleu;
}

}  // namespace seqconv
