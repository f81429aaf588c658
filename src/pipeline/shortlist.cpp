#include "pipeline/shortlist.h"

#include <algorithm>
#include <numeric>

#include "base/option_checks.h"
#include "base/special_ids.h"
#include "text/corpus/ibm_model1.h"
#include "text/corpus/pair_corpus.h"

namespace seqconv::internal {
namespace {

/// A translation that is less probable is no reason to list a word.
constexpr float kLeastListed = 1e-4F;
/// Pairs of which the report is.
constexpr int64_t kReportedPairs = 10'000;

using Rows = std::vector<std::vector<WordProbability>>;

CorpusSide side_to_read(
    const std::vector<std::string>& files, const std::shared_ptr<const TextPipeline>& text) {
  return {
      .files = {files.begin(), files.end()},
      .encode = [text](std::string_view line) { return text->encode(line); },
      .encode_pieces =
          [text](const LineInSlots& line) { return text->encode_pieces(line.line, line.pieces); },
      .vocabulary = text->vocabulary().size()};
}

/// The pairs with words on both sides.
IbmModel1 read_all(
    const TranslationText& text,
    const std::vector<std::string>& source_files,
    const std::vector<std::string>& target_files,
    ShortlistReport& report) {
  IbmModel1 model(text.source->vocabulary().size(), text.target->vocabulary().size());
  read_pairs(
      side_to_read(source_files, text.source),
      side_to_read(target_files, text.target),
      [&](const auto& source, const auto& target) {
        report.source_symbols += SymbolCount::of(source);
        report.target_symbols += SymbolCount::of(target);
        if (source.empty() || target.empty())
          ++report.empty;
        else
          model.add(source, target);
      },
      text.options.protect.empty()
          ? FindPairPieces()
          : [&](std::string_view source,
                std::string_view
                    target) { return find_pair_pieces(source, target, text.options.protect); });
  report.pairs = model.pairs();
  SEQCONV_CHECK(
      report.pairs > 0,
      "no pairs to learn from in '",
      source_files.front(),
      "' and '",
      target_files.front(),
      "': ",
      report.empty,
      " have an empty side");
  return model;
}

/// The `most` words that come most often on the target side, ascending.
std::vector<int32_t> most_frequent(const IbmModel1& model, int64_t words, int64_t most) {
  std::vector<int64_t> counts(static_cast<size_t>(words));
  for (int64_t pair = 0; pair < model.pairs(); ++pair)
    for (const int32_t word : model.target(pair))
      ++counts[static_cast<size_t>(word)];
  std::vector<int32_t> found;
  for (int32_t word = kSpecialIds; word < words; ++word)
    if (counts[static_cast<size_t>(word)] > 0)
      found.push_back(word);
  std::ranges::stable_sort(found, std::ranges::greater(), [&](int32_t word) {
    return counts[static_cast<size_t>(word)];
  });
  found.resize(std::min(found.size(), static_cast<size_t>(most)));
  std::ranges::sort(found);
  return found;
}

/// The `most` most probable words of a row, ascending.
std::vector<int32_t> most_probable(std::vector<WordProbability> row, int64_t most) {
  std::erase_if(row, [](const WordProbability& entry) {
    return entry.word < kSpecialIds || entry.probability < kLeastListed;
  });
  std::ranges::stable_sort(row, std::ranges::greater(), &WordProbability::probability);
  row.resize(std::min(row.size(), static_cast<size_t>(most)));
  std::vector<int32_t> words;
  for (const WordProbability& entry : row)
    words.push_back(entry.word);
  std::ranges::sort(words);
  return words;
}

/// The target word that is spelled like a source word; kUnknownId: none.
int32_t same_word(const Vocabulary& source, const Vocabulary& target, int32_t word) {
  if (word < kSpecialIds || std::ranges::binary_search(source.padding(), word))
    return kUnknownId;
  return target.text_id(source.symbol(word));
}

void insert_word(std::vector<int32_t>& words, int32_t word) {
  const auto place = std::ranges::lower_bound(words, word);
  if (place == words.end() || *place != word)
    words.insert(place, word);
}

}  // namespace

void ShortlistOptions::validate(const OptionNames& names) const {
  check_between<int64_t>(names, "per_word", per_word, 1, 10'000);
  check_between<int64_t>(names, "common", common, 0, 1'000'000);
  check_between<int64_t>(names, "iterations", iterations, 1, 100);
}

Shortlist::Shortlist(const TranslationText& text)
    : source_(text.source->vocabulary()), target_(text.target->vocabulary()) {}

Shortlist Shortlist::learn(
    const TranslationText& text,
    const std::vector<std::string>& source_files,
    const std::vector<std::string>& target_files,
    const ShortlistOptions& options,
    ShortlistReport& report) {
  options.validate("");
  const IbmModel1 model = read_all(text, source_files, target_files, report);
  Shortlist learned(text);
  learned.common_ = most_frequent(model, learned.target_.symbols, options.common);
  for (const int32_t word : text.target->vocabulary().padding())
    insert_word(learned.common_, word);
  Rows rows = model.learn(options.iterations);
  for (int32_t word = 0; word < learned.source_.symbols; ++word) {
    std::vector<int32_t> own =
        most_probable(std::move(rows[static_cast<size_t>(word)]), options.per_word);
    const int32_t same = same_word(text.source->vocabulary(), text.target->vocabulary(), word);
    if (same != kUnknownId)
      insert_word(own, same);
    learned.listed_.insert(learned.listed_.end(), own.begin(), own.end());
    learned.ends_.push_back(std::ssize(learned.listed_));
  }
  learned.describe(model, report);
  return learned;
}

void Shortlist::describe(const IbmModel1& model, ShortlistReport& report) const {
  const int64_t pairs = std::min(model.pairs(), kReportedPairs);
  int64_t listed = 0, covered = 0, all = 0;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const std::vector<int32_t> own = words(model.source(pair));
    listed += std::ssize(own);
    for (const int32_t word : model.target(pair))
      covered += std::ranges::binary_search(own, word) ? 1 : 0;
    all += std::ssize(model.target(pair));
  }
  report.listed = static_cast<double>(listed) / static_cast<double>(pairs);
  report.covered = static_cast<double>(covered) / static_cast<double>(all);
}

std::span<const int32_t> Shortlist::listed(int32_t source) const {
  const auto word = static_cast<size_t>(source);
  const int64_t begin = word == 0 ? 0 : ends_[word - 1];
  return std::span(listed_).subspan(
      static_cast<size_t>(begin), static_cast<size_t>(ends_[word] - begin));
}

std::vector<int32_t> Shortlist::words(
    std::span<const int32_t> source, std::span<const int32_t> others) const {
  std::vector<int32_t> found = {kBeginId, kPadId, kEndId, kUnknownId};
  const auto add = [&](std::span<const int32_t> more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  add(common_);
  add(others);
  for (const int32_t word : source) {
    SEQCONV_CHECK(
        word >= 0 && word < source_.symbols,
        "ids of a sentence must be in [0, ",
        source_.symbols,
        "), but got ",
        word);
    add(listed(word));
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace seqconv::internal
