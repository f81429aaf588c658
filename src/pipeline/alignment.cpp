#include "pipeline/alignment.h"

#include <algorithm>

#include "base/special_ids.h"

namespace seqconv::internal {
namespace {

/// Ranges of tokens, of which the last is </s>, at the text's end.
std::vector<ByteRange> ranges_of(
    const TextPipeline& side, std::string_view text, std::vector<std::string> tokens) {
  tokens.pop_back();
  std::vector<ByteRange> ranges = side.find_ranges(text, tokens);
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

}  // namespace

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
  std::ranges::sort(pairs, [](const AlignedTokens& a, const AlignedTokens& b) {
    return a.source != b.source ? a.source < b.source : a.target < b.target;
  });
  return pairs;
}

void set_alignment(
    const TextPipeline& target, SourceShares shares, Alignments wanted, Translation& translation) {
  translation.token_ranges = ranges_of(target, translation.text, translation.tokens);
  translation.alignment = align_tokens(shares);
  if (wanted == Alignments::kShares)
    translation.source_shares = std::move(shares.values);
}

}  // namespace seqconv::internal
