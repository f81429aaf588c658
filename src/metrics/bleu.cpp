#include "seqconv/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "characters.h"
#include "ngrams.h"
#include "report.h"
#include "seqconv/base/error.h"
#include "seqconv/base/special_ids.h"

namespace seqconv {
namespace {

using metrics::fixed;
using metrics::NgramCount;

constexpr int kTokenBits = 32;

/// Numbers for the tokens of one sentence.
class TokenNumbers {
 public:
  std::vector<uint32_t> operator()(const std::vector<std::string>& tokens) {
    std::vector<uint32_t> numbers;
    for (const std::string& token : tokens) {
      const auto next = static_cast<uint32_t>(numbers_.size());
      numbers.push_back(numbers_.emplace(token, next).first->second);
    }
    return numbers;
  }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

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
  for (size_t n = 1; n <= BleuStatistics::kOrder; ++n) {
    const auto found = metrics::count_ngrams(hypothesis, n, kTokenBits);
    std::vector<NgramCount> allowed;
    for (const auto& reference : references)
      allowed = metrics::merge_larger(
          allowed,
          metrics::count_ngrams(reference, n, kTokenBits));
    statistics.correct[n - 1] = metrics::count_matches(found, allowed);
    if (hypothesis.size() >= n)
      statistics.total[n - 1] = static_cast<int64_t>(hypothesis.size() - n + 1);
  }
  return statistics;
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

BleuScore compute_bleu(
    const BleuStatistics& statistics,
    BleuSmoothing smoothing) {
  BleuScore result;
  result.statistics = statistics;
  const auto hypothesis = static_cast<double>(statistics.hypothesis_length);
  const auto reference = static_cast<double>(statistics.reference_length);
  result.ratio = reference > 0 ? hypothesis / reference : 0;
  result.brevity_penalty = 1;
  if (hypothesis < reference)
    result.brevity_penalty =
        hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  const auto matched = [](int64_t n) { return n > 0; };
  if (std::none_of(
          statistics.correct.begin(),
          statistics.correct.end(),
          matched))
    return result;
  double share = 1;
  double sum = 0;
  for (size_t n = 0; n < BleuStatistics::kOrder; ++n) {
    double& precision = result.precisions[n];
    const auto total = static_cast<double>(statistics.total[n]);
    if (statistics.total[n] == 0)
      return result;  // hypotheses too short for n-grams: BLEU is 0
    if (statistics.correct[n] > 0) {
      precision = 100.0 * static_cast<double>(statistics.correct[n]) / total;
    } else if (smoothing == BleuSmoothing::kExp) {
      share *= 2;
      precision = 100.0 / (share * total);
    }
    sum += std::log(precision);
  }
  result.score =
      result.brevity_penalty * std::exp(sum / BleuStatistics::kOrder);
  return result;
}

Bleu::Bleu(const BleuOptions& options) : options_(options) {
  options_.validate();
  if (options_.style == BleuStyle::kMultiBleu) {
    options_.tokenizer = BleuTokenizer::kNone;
    options_.smoothing = BleuSmoothing::kNone;
  }
}

std::vector<std::string> Bleu::prepare(std::string_view line) const {
  std::string text =
      options_.lowercase ? metrics::to_lower(line) : std::string(line);
  if (options_.compound_split)
    text = split_compounds(text);
  return tokenize(text, options_.tokenizer);
}

void Bleu::add(
    std::string_view hypothesis,
    const std::vector<std::string>& references) {
  metrics::check_references(references.size(), references_);
  TokenNumbers numbers;
  const std::vector<uint32_t> found = numbers(prepare(hypothesis));
  std::vector<std::vector<uint32_t>> allowed;
  for (const std::string& reference : references) {
    std::vector<std::string> tokens = prepare(reference);
    if (options_.style == BleuStyle::kMultiBleu)
      for (std::string& token : tokens)
        if (token == kUnknownSymbol)
          token.clear();  // no hypothesis has an empty token
    allowed.push_back(numbers(tokens));
  }
  statistics_ += count_sentence(found, allowed);
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
      enum_name(options_.tokenizer),
      "|smooth:",
      enum_name(options_.smoothing),
      "|",
      metrics::kVersionTag);
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
    const BleuOptions& options) {
  Bleu bleu(options);
  metrics::add_corpus(bleu, hypotheses, references);
  return bleu;
}

}  // namespace seqconv
