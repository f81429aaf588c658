#include "metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "base/characters.h"
#include "base/error.h"
#include "base/special_ids.h"
#include "base/utf8.h"
#include "metrics/ngram_table.h"
#include "metrics/ngrams.h"
#include "metrics/report.h"
#include "metrics/split_tokens.h"
#include "metrics/word_numbers.h"

namespace seqconv::internal {
namespace {

using metrics::fixed;
using metrics::SortedNgrams;
using metrics::WordNumbers;
using Sentence = std::vector<uint32_t>;

/// The length nearest to the hypothesis's; of two, the smaller one.
int64_t nearest_length(int64_t hypothesis, const std::vector<Sentence>& references) {
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

template <class Ngram>
void count_ngrams(
    const Sentence& hypothesis,
    const std::vector<Sentence>& references,
    int bits,
    BleuStatistics& statistics) {
  const size_t order = statistics.total.size();
  const auto sort = [&](const Sentence& sentence) {
    return SortedNgrams<Ngram>(sentence, order, bits);
  };
  const SortedNgrams<Ngram> found = sort(hypothesis);
  std::vector<SortedNgrams<Ngram>> allowed;
  for (const Sentence& reference : references)
    allowed.push_back(sort(reference));
  for (size_t n = 1; n <= order; ++n) {
    statistics.correct[n - 1] = metrics::count_matches<Ngram>(found, allowed, n);
    statistics.total[n - 1] = found.total(n);
  }
}

/// The same where so many symbols fit into no number: an n-gram's number is
/// that of its first n - 1 symbols and of its last one.
void count_numbered_ngrams(
    const Sentence& hypothesis,
    const std::vector<Sentence>& references,
    BleuStatistics& statistics) {
  metrics::NgramTable table;
  Sentence ours(hypothesis.size());
  std::vector<Sentence> theirs;
  for (const Sentence& reference : references)
    theirs.emplace_back(reference.size());
  for (size_t n = 1; n <= statistics.total.size(); ++n) {
    table.clear(hypothesis.size());
    for (size_t i = 0; i + n <= hypothesis.size(); ++i) {
      ours[i] = table.add(ours[i], hypothesis[i + n - 1]);
      ++statistics.total[n - 1];
    }
    std::vector<int32_t> allowed(table.counts().size());
    for (size_t r = 0; r < references.size(); ++r) {
      std::vector<int32_t> counts(allowed.size());
      for (size_t i = 0; i + n <= references[r].size(); ++i) {
        uint32_t& gram = theirs[r][i];
        if (gram != metrics::NgramTable::kAbsent)
          gram = table.find(gram, references[r][i + n - 1]);
        if (gram != metrics::NgramTable::kAbsent)
          ++counts[gram];
      }
      for (size_t gram = 0; gram < allowed.size(); ++gram)
        allowed[gram] = std::max(allowed[gram], counts[gram]);
    }
    for (size_t gram = 0; gram < allowed.size(); ++gram)
      statistics.correct[n - 1] += std::min(allowed[gram], table.counts()[gram]);
  }
}

/// Of sentences of numbers below `words`.
BleuStatistics count_sentence(
    const Sentence& hypothesis,
    const std::vector<Sentence>& references,
    uint32_t words,
    int64_t order) {
  BleuStatistics statistics;
  statistics.correct.resize(static_cast<size_t>(order));
  statistics.total.resize(static_cast<size_t>(order));
  statistics.hypothesis_length = static_cast<int64_t>(hypothesis.size());
  statistics.reference_length = nearest_length(statistics.hypothesis_length, references);
  const int bits = metrics::bits_of_symbols(words);
  if (bits * order <= 64)
    count_ngrams<uint64_t>(hypothesis, references, bits, statistics);
  else if (bits * order <= 128)
    count_ngrams<unsigned __int128>(hypothesis, references, bits, statistics);
  else
    count_numbered_ngrams(hypothesis, references, statistics);
  return statistics;
}

/// True when a smoothing has a value.
bool has_value(BleuSmoothing smoothing) {
  return smoothing == BleuSmoothing::kFloor || smoothing == BleuSmoothing::kAddK;
}

double smoothing_value(const BleuOptions& options) {
  if (options.smoothing_value != BleuOptions::kUsualValue)
    return options.smoothing_value;
  return options.smoothing == BleuSmoothing::kFloor ? 0.1 : 1;
}

/// BLEU of BleuStatistics::numbers() or sums of them. Precisions are computed
/// in the precision of the sums, the rest in double.
template <class Real>
BleuScore score_numbers(std::span<const Real> sums, const BleuOptions& options) {
  const size_t order = sums.size() / 2 - 1;
  const std::span<const Real> correct = sums.subspan(2, order);
  const auto hypothesis = static_cast<double>(sums[0]);
  const auto reference = static_cast<double>(sums[1]);
  const double value = smoothing_value(options);
  BleuScore result;
  result.precisions.resize(order);
  result.ratio = reference > 0 ? hypothesis / reference : 0;
  result.brevity_penalty = 1;
  if (hypothesis < reference)
    result.brevity_penalty = hypothesis > 0 ? std::exp(1 - reference / hypothesis) : 0;
  const auto matched = [](Real n) { return n > 0; };
  if (std::none_of(correct.begin(), correct.end(), matched))
    return result;
  Real share = 1;
  double sum = 0;
  size_t orders = 0;
  for (; orders < order; ++orders) {
    const bool added = options.smoothing == BleuSmoothing::kAddK && orders > 0;
    const Real more = added ? static_cast<Real>(value) : Real(0);
    const Real found = correct[orders] + more;
    const Real total = sums[2 + order + orders] + more;
    if (total == 0)
      break;  // hypotheses too short for n-grams
    double& precision = result.precisions[orders];
    if (found > 0) {
      precision = 100 * found / total;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      share *= 2;
      precision = 100 / (share * total);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      precision = static_cast<Real>(100 * value) / total;
    }
    sum += std::log(precision);
  }
  if (orders == order || options.effective_order)
    result.score = result.brevity_penalty * std::exp(sum / static_cast<double>(orders));
  return result;
}

/// Whether a tokenizer is one that stands above this layer.
bool is_given(BleuTokenizer tokenizer) {
  return tokenizer == BleuTokenizer::kSpm || tokenizer == BleuTokenizer::kJaMecab;
}

/// A line's tokens with a tokenizer that was given.
std::vector<std::string_view> split_by(
    const LineTokenizer& tokenizer, std::string_view line, WordNumbers& texts) {
  std::string tokens;
  for (const std::string& token : tokenizer.split(replace_invalid_utf8(line)))
    (tokens += token) += ' ';
  return split_words(texts.keep(std::move(tokens)));
}

std::vector<std::string_view> split_line(
    std::string_view line,
    const BleuOptions& options,
    const LineTokenizer& tokenizer,
    WordNumbers& texts) {
  if (options.lowercase)
    line = texts.keep(to_lower(line));
  if (options.compound_split)
    line = texts.keep(split_compounds(line));
  if (!is_given(options.tokenizer))
    return metrics::split_tokens(line, options.tokenizer, texts);
  line = trim_end(line);
  if (options.tokenizer == BleuTokenizer::kJaMecab)
    line = trim_start(line);
  return split_by(tokenizer, line, texts);
}

std::string precision_list(const BleuScore& score) {
  std::string list;
  for (double precision : score.precisions)
    list += concat(list.empty() ? "" : "/", fixed(precision, 1));
  return list;
}

}  // namespace

void BleuOptions::validate(const OptionNames& names) const {
  const auto reject = [&](const char* key) {
    fail_usage(names(key), " has no effect with ", names.setting("style", enum_name(style)));
  };
  const BleuOptions defaults;
  if (order < 1 || order > 16)
    fail_usage(names("order"), " must be from 1 to 16, but got ", order);
  const bool valued = smoothing_value != kUsualValue;
  if (valued && !(smoothing_value >= 0))
    fail_usage(names("smoothing_value"), " must be >= 0, but got ", smoothing_value);
  if (valued && !has_value(smoothing))
    fail_usage(
        names("smoothing_value"),
        " has no effect with ",
        names.setting("smoothing", enum_name(smoothing)));
  if (style == BleuStyle::kSacreBleu) {
    if (compound_split)
      reject("compound_split");
    return;
  }
  if (has_value(smoothing))
    reject("smoothing");
  if (order != defaults.order)
    reject("order");
  if (effective_order)
    reject("effective_order");
  if (tokenizer != defaults.tokenizer && tokenizer != BleuTokenizer::kNone)
    reject("tokenizer");
}

std::string_view language_without_words(
    const std::vector<std::string>& lines, const BleuOptions& options) {
  const bool splits_at_blanks = options.style == BleuStyle::kMultiBleu ||
      options.tokenizer == BleuTokenizer::k13a || options.tokenizer == BleuTokenizer::kNone ||
      options.tokenizer == BleuTokenizer::kIntl;
  if (!splits_at_blanks && options.tokenizer != BleuTokenizer::kZh)
    return "";
  const std::string_view language = unsegmented_language(lines);
  return splits_at_blanks || language != "Chinese" ? language : "";
}

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  correct.resize(std::max(correct.size(), other.correct.size()));
  total.resize(correct.size());
  for (size_t n = 0; n < other.correct.size(); ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

std::vector<double> BleuStatistics::numbers() const {
  std::vector<double> numbers = {
      static_cast<double>(hypothesis_length), static_cast<double>(reference_length)};
  numbers.insert(numbers.end(), correct.begin(), correct.end());
  numbers.insert(numbers.end(), total.begin(), total.end());
  return numbers;
}

BleuStatistics BleuStatistics::of_numbers(std::span<const double> numbers) {
  const auto number = [&](size_t i) { return static_cast<int64_t>(numbers[i]); };
  BleuStatistics statistics;
  statistics.hypothesis_length = number(0);
  statistics.reference_length = number(1);
  const size_t order = numbers.size() / 2 - 1;
  for (size_t n = 0; n < order; ++n) {
    statistics.correct.push_back(number(2 + n));
    statistics.total.push_back(number(2 + order + n));
  }
  return statistics;
}

BleuScore compute_bleu(const BleuStatistics& statistics, const BleuOptions& options) {
  const std::vector<double> numbers = statistics.numbers();
  BleuScore score = score_numbers(std::span(numbers), options);
  score.statistics = statistics;
  return score;
}

Bleu::Bleu(const BleuOptions& options, LineTokenizer tokenizer)
    : options_(options), tokenizer_(std::move(tokenizer)) {
  options_.validate();
  if (is_given(options_.tokenizer) && !tokenizer_.split)
    fail_usage(
        "bleu.tokenizer = '",
        enum_name(options_.tokenizer),
        "' needs a ",
        options_.tokenizer == BleuTokenizer::kSpm ? "SentencePiece model" : "dictionary of MeCab");
  if (options_.style == BleuStyle::kMultiBleu) {
    options_.tokenizer = BleuTokenizer::kNone;
    options_.smoothing = BleuSmoothing::kNone;
  }
  statistics_.correct.resize(static_cast<size_t>(options_.order));
  statistics_.total.resize(statistics_.correct.size());
}

BleuStatistics Bleu::count(
    std::string_view hypothesis, const std::vector<std::string>& references) const {
  metrics::check_references(references.size());
  WordNumbers numbers;
  const auto read = [&](std::string_view line) {
    return numbers.of_words(split_line(line, options_, tokenizer_, numbers));
  };
  const Sentence found = read(hypothesis);
  std::vector<Sentence> allowed;
  for (const std::string& reference : references)
    allowed.push_back(read(reference));
  if (options_.style == BleuStyle::kMultiBleu) {
    const uint32_t unknown = numbers.of_word(kUnknownSymbol);
    const uint32_t nothing = numbers.of_word("");  // no hypothesis has it
    for (Sentence& reference : allowed)
      std::replace(reference.begin(), reference.end(), unknown, nothing);
  }
  return count_sentence(found, allowed, numbers.count(), options_.order);
}

BleuStatistics Bleu::add(std::string_view hypothesis, const std::vector<std::string>& references) {
  const BleuStatistics counts = count(hypothesis, references);
  add_counts(counts, references.size());
  return counts;
}

void Bleu::add_counts(const BleuStatistics& counts, size_t references) {
  metrics::check_references(references, references_);
  statistics_ += counts;
}

BleuScore Bleu::score() const {
  return compute_bleu(statistics_, options_);
}

std::string Bleu::signature() const {
  const char* letters = options_.lowercase ? "lc" : "mixed";
  if (options_.style == BleuStyle::kMultiBleu)
    return concat(
        "nrefs:",
        metrics::references_text(references_),
        "|case:",
        letters,
        "|style:multi-bleu|split:",
        options_.compound_split ? "yes" : "no",
        "|",
        metrics::kVersionTag);
  std::string smoothing(enum_name(options_.smoothing));
  if (has_value(options_.smoothing))
    smoothing += concat("[", fixed(smoothing_value(options_), 2), "]");
  if (options_.order != BleuOptions().order)
    smoothing += concat("|order:", options_.order);
  return concat(
      concat("nrefs:", metrics::references_text(references_)),
      concat("|case:", letters),
      options_.effective_order ? "|eff:yes|tok:" : "|eff:no|tok:",
      tokenizer_.split ? tokenizer_.name : enum_name(options_.tokenizer),
      concat("|smooth:", smoothing, "|", metrics::kVersionTag));
}

ScoreOfSums Bleu::score_of_sums() const {
  const BleuOptions options = options_;
  return {
      .exact =
          [options](std::span<const double> sums) { return score_numbers(sums, options).score; },
      .single =
          [options](std::span<const float> sums) {
            return SampleScore{.score = score_numbers(sums, options).score};
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

}  // namespace seqconv::internal
