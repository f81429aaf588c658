#include "metrics/rouge.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "base/error.h"
#include "metrics/common_subsequence.h"
#include "metrics/ngram_table.h"
#include "metrics/report.h"
#include "metrics/rouge_limits.h"
#include "metrics/rouge_tokens.h"
#include "metrics/rouge_values.h"

namespace seqconv::internal {
namespace {

using metrics::NgramTable;
using metrics::RougeOverlap;
using metrics::RougeText;
using Tokens = std::span<const uint32_t>;

std::vector<std::string> measure_names(const RougeOptions& options) {
  std::vector<std::string> names;
  for (int64_t n = 1; n <= options.order; ++n)
    names.push_back(concat("ROUGE-", n));
  names.emplace_back("ROUGE-L");
  if (options.style == RougeStyle::kRougeScore)
    names.emplace_back("ROUGE-Lsum");
  return names;
}

/// f(tokens) for each sentence of a text, whose tokens may have other numbers.
template <class Function>
void for_each_sentence(const RougeText& text, Tokens tokens, const Function& f) {
  size_t start = 0;
  for (size_t end : text.ends) {
    f(tokens.subspan(start, end - start));
    start = end;
  }
}

}  // namespace

/// What comparing pairs needs, kept from pair to pair.
class Rouge::Comparison {
 public:
  explicit Comparison(const RougeOptions& options)
      : options_(options),
        tokenizer_(options),
        tables_(static_cast<size_t>(options.order)),
        overlaps_(measure_names(options).size()) {}

  std::vector<RougeValues> compare(
      std::string_view hypothesis, const std::vector<std::string>& references);

  std::string name_of_exceptions() const { return tokenizer_.irregular_forms().name(); }

 private:
  void read(std::string_view text, RougeText& out);
  void read_hypothesis(std::string_view text);
  void compare_ngrams();
  RougeOverlap compare_sentences(std::string_view hypothesis, std::string_view reference);
  int64_t common_length();
  int64_t union_length();
  RougeOverlap of_tokens(int64_t matched) const;
  std::vector<RougeOverlap>& next_measure() { return overlaps_[measure_++]; }

  const RougeOptions options_;
  metrics::RougeTokenizer tokenizer_;
  RougeText hypothesis_;
  RougeText reference_;
  /// Numbers of the hypothesis's words; where the reference has others, absent.
  std::vector<uint32_t> hypothesis_words_;
  std::vector<uint32_t> reference_words_;
  std::vector<uint32_t> grams_;
  std::vector<NgramTable> tables_;  ///< of the hypothesis, one for each n
  std::vector<int32_t> left_;       ///< n-grams not matched yet
  metrics::CommonSubsequence subsequence_;
  std::vector<uint8_t> marked_;
  std::vector<std::vector<RougeOverlap>> overlaps_;  ///< [measure][reference]
  size_t measure_ = 0;
};

/// Up to where the limits are.
void Rouge::Comparison::read(std::string_view text, RougeText& out) {
  if (options_.max_words > 0)
    tokenizer_.split(metrics::first_words(text, options_.max_words), out);
  else if (options_.max_bytes > 0)
    tokenizer_.split(metrics::first_bytes(text, options_.max_bytes), out);
  else
    tokenizer_.split(text, out);
}

void Rouge::Comparison::read_hypothesis(std::string_view text) {
  read(text, hypothesis_);
  const std::vector<uint32_t>& tokens = hypothesis_.tokens;
  grams_.assign(tokens.size(), 0);
  for (size_t n = 1; n <= tables_.size(); ++n) {
    NgramTable& table = tables_[n - 1];
    table.clear(tokens.size());
    for (size_t i = 0; i + n <= tokens.size(); ++i)
      grams_[i] = table.add(grams_[i], tokens[i + n - 1]);
    if (n == 1)
      hypothesis_words_ = grams_;
  }
}

void Rouge::Comparison::compare_ngrams() {
  const std::vector<uint32_t>& tokens = reference_.tokens;
  const auto count = [](size_t length, size_t n) {
    return length < n ? 0 : static_cast<int64_t>(length - n + 1);
  };
  grams_.assign(tokens.size(), 0);
  for (size_t n = 1; n <= tables_.size(); ++n) {
    NgramTable& table = tables_[n - 1];
    RougeOverlap overlap;
    overlap.reference = count(tokens.size(), n);
    overlap.hypothesis = count(hypothesis_.size(), n);
    left_ = table.counts();
    for (size_t i = 0; i + n <= tokens.size(); ++i) {
      uint32_t& gram = grams_[i];
      if (gram != NgramTable::kAbsent)
        gram = table.find(gram, tokens[i + n - 1]);
      if (gram != NgramTable::kAbsent && left_[gram]-- > 0)
        ++overlap.matched;
    }
    next_measure().push_back(overlap);
    if (n == 1)
      reference_words_ = grams_;
  }
}

RougeOverlap Rouge::Comparison::of_tokens(int64_t matched) const {
  return {
      matched, static_cast<int64_t>(reference_.size()), static_cast<int64_t>(hypothesis_.size())};
}

int64_t Rouge::Comparison::common_length() {
  subsequence_.set_reference(reference_words_, tables_[0].counts().size());
  return static_cast<int64_t>(subsequence_.length(hypothesis_words_));
}

/// The reference's tokens in the union over the summary's sentences, no token
/// more often than the summary has it.
int64_t Rouge::Comparison::union_length() {
  if (reference_.ends.size() == 1 && hypothesis_.ends.size() == 1)
    return common_length();
  left_ = tables_[0].counts();
  int64_t matched = 0;
  for_each_sentence(reference_, reference_words_, [&](Tokens sentence) {
    subsequence_.set_reference(sentence, left_.size());
    marked_.assign(sentence.size(), 0);
    for_each_sentence(
        hypothesis_, hypothesis_words_, [&](Tokens other) { subsequence_.mark(other, marked_); });
    for (size_t i = 0; i < sentence.size(); ++i)
      if (marked_[i] != 0 && left_[sentence[i]]-- > 0)
        ++matched;
  });
  return matched;
}

/// ROUGE-L with a limit of bytes, as the program has it: the sentences go
/// beyond it, but a word counts as often as both sides have it within.
RougeOverlap Rouge::Comparison::compare_sentences(
    std::string_view hypothesis, std::string_view reference) {
  const auto counts_of = [](const RougeText& text) {
    std::unordered_map<uint32_t, int64_t> counts;
    for (uint32_t token : text.tokens)
      ++counts[token];
    return counts;
  };
  auto ours = counts_of(hypothesis_);
  auto theirs = counts_of(reference_);
  const auto whole = [&](std::string_view text) {
    RougeText sentences;
    tokenizer_.split(metrics::first_whole_sentences(text, options_.max_bytes), sentences);
    return sentences;
  };
  const RougeText summary = whole(hypothesis);
  const RougeText wanted = whole(reference);
  NgramTable table;
  table.clear(summary.size());
  std::vector<uint32_t> found;
  for (uint32_t token : summary.tokens)
    found.push_back(table.add(0, token));
  std::vector<uint32_t> known;
  for (uint32_t token : wanted.tokens)
    known.push_back(table.find(0, token));
  RougeOverlap overlap = of_tokens(0);
  overlap.reference = static_cast<int64_t>(wanted.size());
  size_t start = 0;
  for_each_sentence(wanted, known, [&](Tokens sentence) {
    subsequence_.set_reference(sentence, table.counts().size());
    marked_.assign(sentence.size(), 0);
    for_each_sentence(summary, found, [&](Tokens other) { subsequence_.mark(other, marked_); });
    for (size_t i = 0; i < sentence.size(); ++i) {
      if (marked_[i] == 0)
        continue;
      int64_t& left = ours[wanted.tokens[start + i]];
      int64_t& there = theirs[wanted.tokens[start + i]];
      if (left > 0 && there > 0)
        --left, --there, ++overlap.matched;
    }
    start += sentence.size();
  });
  return overlap;
}

std::vector<RougeValues> Rouge::Comparison::compare(
    std::string_view hypothesis, const std::vector<std::string>& references) {
  tokenizer_.forget_much();
  read_hypothesis(hypothesis);
  for (std::vector<RougeOverlap>& overlaps : overlaps_)
    overlaps.clear();
  for (const std::string& reference : references) {
    measure_ = 0;
    read(reference, reference_);
    compare_ngrams();
    if (options_.style == RougeStyle::kRougeScore)
      next_measure().push_back(of_tokens(common_length()));
    next_measure().push_back(
        options_.max_bytes > 0 ? compare_sentences(hypothesis, reference)
                               : of_tokens(union_length()));
  }
  std::vector<RougeValues> values;
  for (const std::vector<RougeOverlap>& overlaps : overlaps_)
    values.push_back(metrics::combine_references(overlaps, options_));
  return values;
}

void RougeOptions::validate(const OptionNames& names) const {
  if (order < 1 || order > 9)
    fail_usage(names("order"), " must be from 1 to 9, but got ", order);
  if (!(alpha >= 0 && alpha <= 1))
    fail_usage(names("alpha"), " must be from 0 to 1, but got ", alpha);
  for (const auto& [key, limit] : {std::pair{"max_words", max_words}, {"max_bytes", max_bytes}})
    if (limit < 0)
      fail_usage(names(key), " must be >= 0, but got ", limit);
  if (max_words > 0 && max_bytes > 0)
    fail_usage(
        names("max_words"),
        " and ",
        names("max_bytes"),
        " cannot both be above 0, but got ",
        max_words,
        " and ",
        max_bytes);
  const RougeOptions defaults;
  const auto reject = [&](const char* key, const std::string& setting) {
    fail_usage(names(key), " has no effect with ", setting);
  };
  if (style == RougeStyle::kRougeScore) {
    const std::string setting = names.setting("style", enum_name(RougeStyle::kRougeScore));
    if (references != defaults.references)
      reject("combine", setting);
    if (alpha != defaults.alpha)
      reject("alpha", setting);
    if (!exceptions.empty())
      reject("exceptions", setting);
    if (max_words > 0 || max_bytes > 0)
      reject(max_words > 0 ? "max_words" : "max_bytes", setting);
  }
  if (!stem && !exceptions.empty())
    reject("exceptions", names.off("stem"));
}

RougeStatistics& RougeStatistics::operator+=(const RougeStatistics& other) {
  sums.resize(std::max(sums.size(), other.sums.size()));
  for (size_t i = 0; i < other.sums.size(); ++i)
    sums[i] = metrics::sum_values(sums[i], other.sums[i]);
  pairs += other.pairs;
  return *this;
}

std::vector<RougeValues> RougeStatistics::means() const {
  std::vector<RougeValues> means(sums.size());
  for (size_t i = 0; i < sums.size() && pairs > 0; ++i)
    means[i] = metrics::scale_values(sums[i], 1 / static_cast<double>(pairs));
  return means;
}

Rouge::Rouge(const RougeOptions& options) : options_(options) {
  options_.validate();
  names_ = measure_names(options_);
  statistics_.sums.resize(names_.size());
  comparison_ = std::make_unique<Comparison>(options_);
}
Rouge::Rouge(Rouge&&) noexcept = default;
Rouge& Rouge::operator=(Rouge&&) noexcept = default;
Rouge::~Rouge() = default;

std::vector<RougeValues> Rouge::compare(
    std::string_view hypothesis, const std::vector<std::string>& references) {
  SEQCONV_CHECK(!references.empty(), "a score needs at least one reference, but got 0");
  return comparison_->compare(hypothesis, references);
}

std::vector<RougeValues> Rouge::add(
    std::string_view hypothesis, const std::vector<std::string>& references) {
  std::vector<RougeValues> values = compare(hypothesis, references);
  add_values(values, references.size());
  return values;
}

void Rouge::add_values(const std::vector<RougeValues>& values, size_t references) {
  metrics::check_references(references, references_);
  statistics_ += {values, 1};
}

std::string Rouge::signature() const {
  const std::string start = concat(
      "nrefs:",
      metrics::references_text(references_),
      "|style:",
      enum_name(options_.style),
      options_.tokenizer == RougeWords::kUnicode ? "|tok:unicode" : "",
      "|stem:",
      options_.stem ? "porter" : "no");
  std::string end = concat("|", metrics::kVersionTag);
  if (options_.max_words > 0)
    end = concat("|words:", options_.max_words, end);
  if (options_.max_bytes > 0)
    end = concat("|bytes:", options_.max_bytes, end);
  if (options_.style == RougeStyle::kRougeScore)
    return start + end;
  return concat(
      start,
      "|exceptions:",
      comparison_->name_of_exceptions(),
      "|refs:",
      enum_name(options_.references),
      "|alpha:",
      options_.alpha,
      end);
}

std::string Rouge::report(int decimals) const {
  std::string names;
  std::string f;
  std::string recall;
  std::string precision;
  const std::vector<RougeValues> values = score();
  for (size_t i = 0; i < names_.size(); ++i) {
    const std::string between = i == 0 ? "" : "/";
    names += between + names_[i];
    f += between + metrics::fixed(values[i].f, decimals);
    recall += between + metrics::fixed(values[i].recall, decimals);
    precision += between + metrics::fixed(values[i].precision, decimals);
  }
  return concat(
      concat(names, "|", signature(), " = F ", f), concat(" R ", recall, " P ", precision));
}

Rouge corpus_rouge(
    const std::vector<std::string>& hypotheses,
    const std::vector<std::vector<std::string>>& references,
    const RougeOptions& options) {
  Rouge rouge(options);
  metrics::add_corpus(rouge, hypotheses, references);
  return rouge;
}

}  // namespace seqconv::internal
