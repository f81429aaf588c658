#include "pipeline/alignment.h"

#include <algorithm>
#include <span>

#include "base/special_ids.h"
#include "pipeline/stop_scope.h"

namespace seqconv::internal {
namespace {

/// Ranges of tokens, of which the last is </s>, at the text's end.
std::vector<ByteRange> ranges_of(
    const TextPipeline& side, std::string_view text, std::span<const std::string> tokens) {
  std::vector<ByteRange> ranges = side.find_ranges(text, tokens.first(tokens.size() - 1));
  ranges.push_back({std::ssize(text), std::ssize(text)});
  return ranges;
}

/// The symbols of a text if they are those of `ids`, which may have been cut: they say
/// what <unk> was. Else the vocabulary's.
std::vector<std::string> symbols_of(
    const TextPipeline& side, std::string_view text, const std::vector<int32_t>& ids) {
  std::vector<std::string> symbols = side.segment(text);
  const bool same = symbols.size() >= ids.size() &&
      std::equal(ids.begin(), ids.end(), symbols.begin(), [&](int32_t id, const auto& symbol) {
                      return side.vocabulary().text_id(symbol) == id;
                    });
  if (!same)
    return side.symbols(ids);
  symbols.resize(ids.size());
  return symbols;
}

/// Puts the source's tokens, </s> the last, and their places into a result.
void set_source_tokens(
    const TextPipeline& source,
    std::string_view text,
    const std::vector<int32_t>& ids,
    TranslationResult& result) {
  const std::string decoded = text.empty() ? source.decode(ids) : std::string();
  const std::string_view own = text.empty() ? decoded : text;
  result.source_tokens = symbols_of(source, own, ids);
  result.source_tokens.emplace_back(kSpecialSymbols[kEndId]);
  result.source_ranges = ranges_of(source, own, result.source_tokens);
}

/// Puts the places of a translation's tokens and what they belong to into it.
void set_alignment(
    const TextPipeline& target, SourceShares shares, Alignments wanted, Translation& translation) {
  translation.token_ranges = ranges_of(target, translation.text, translation.tokens);
  translation.alignment = align_tokens(shares);
  if (wanted == Alignments::kShares)
    translation.source_shares = std::move(shares.values);
}

}  // namespace

std::vector<AlignedTokens> align_tokens(const SourceShares& shares) {
  const int64_t S = shares.source_tokens;
  std::vector<AlignedTokens> pairs;
  for (int64_t t = 0; t + 1 < shares.target_tokens(); ++t) {
    const float* const row = shares.values.data() + t * S;
    const float* const most = std::max_element(row, row + S);
    if (most == row + S - 1)
      continue;
    for (int64_t s = 0; s + 1 < S; ++s)
      if (2 * row[s] >= *most)
        pairs.push_back({s, t});
  }
  std::ranges::sort(pairs);
  return pairs;
}

void align(
    const TranslationSystem& system,
    const SentenceToAlign& sentence,
    TranslationResult& result,
    std::vector<Translation>& translations) {
  constexpr size_t kTogether = 8;
  for (size_t first = 0; first < translations.size(); first += kTogether) {
    StopScope::check();
    const size_t count = std::min(kTogether, translations.size() - first);
    std::vector<std::vector<int32_t>> targets;
    for (size_t i = first; i < first + count; ++i) {
      const std::vector<int32_t>& tokens = sentence.found[i].tokens;
      targets.emplace_back(tokens.begin(), tokens.end() - 1);
    }
    std::vector<SourceShares> shares = system.backend->source_shares(
        std::vector<std::vector<int32_t>>(count, sentence.source), targets);
    for (size_t i = 0; i < count; ++i)
      set_alignment(
          *system.text.target, std::move(shares[i]), sentence.wanted, translations[first + i]);
  }
  set_source_tokens(*system.text.source, sentence.text, sentence.source, result);
}

}  // namespace seqconv::internal
