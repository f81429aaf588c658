#include "pipeline/alignment.h"

#include <algorithm>
#include <new>
#include <span>

#include "base/special_ids.h"
#include "pipeline/stop_scope.h"

namespace seqconv::internal {
namespace {

/// Ranges of tokens, of which the last is </s>, at the text's end.
std::vector<ByteRange> ranges_of(
    const TextPipeline& side,
    std::string_view text,
    std::span<const std::string> tokens,
    const Slots& slots) {
  std::vector<ByteRange> ranges = side.find_ranges(text, tokens.first(tokens.size() - 1), slots);
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
                      return side.vocabulary().token_id(symbol) == id;
                    });
  if (!same)
    return side.symbols(ids);
  symbols.resize(ids.size());
  return symbols;
}

/// Puts the places of a translation's tokens and what they belong to into it.
void set_alignment(
    const TextPipeline& target,
    SourceShares shares,
    const SentenceToAlign& sentence,
    Translation& translation) {
  translation.token_ranges =
      ranges_of(target, translation.text, translation.tokens, sentence.slots);
  translation.alignment = align_tokens(shares);
  if (sentence.wanted == Alignments::kShares)
    translation.source_shares = std::move(shares.values);
}

using Found = std::span<const Hypothesis>;

/// The first of them, at least one, which are read at a time: their tokens and the source's
/// are not too many, however many hypotheses there are.
Found first_group(Found found, size_t source_tokens) {
  constexpr size_t kTokens = 4096;
  size_t longest = 0, count = 0;
  do {
    longest = std::max(longest, found[count].tokens.size());
  } while (++count < found.size() &&
           source_tokens + (count + 1) * std::max(longest, found[count].tokens.size()) <= kTokens);
  return found.first(count);
}

/// The looks of a group, one by one if there is not memory enough for all; std::bad_alloc
/// where there is not enough for one.
std::vector<SourceShares> read_group(
    const TranslationBackend& backend, const std::vector<int32_t>& source, Found group) {
  StopScope::check();
  std::vector<std::vector<int32_t>> targets;
  for (const Hypothesis& hypothesis : group)
    targets.emplace_back(hypothesis.tokens.begin(), hypothesis.tokens.end() - 1);
  try {
    return backend.source_shares(source, targets);
  } catch (const std::bad_alloc&) {
    if (group.size() == 1)
      throw;
  }
  std::vector<SourceShares> shares;
  for (size_t i = 0; i < group.size(); ++i)
    shares.push_back(std::move(read_group(backend, source, group.subspan(i, 1)).front()));
  return shares;
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

SourceShares look_at_source(
    const TranslationBackend& backend,
    const std::vector<int32_t>& source,
    const std::vector<int32_t>& target) {
  StopScope::check();
  return std::move(backend.source_shares(source, {target}).front());
}

void set_source_tokens(
    const TextPipeline& source,
    std::string_view text,
    const std::vector<int32_t>& ids,
    const Slots& slots,
    TranslationResult& result) {
  const std::string decoded = text.empty() ? source.decode(ids) : std::string();
  const std::string_view own = text.empty() ? decoded : text;
  std::vector<std::string> tokens = symbols_of(source, own, ids);
  tokens.emplace_back(kSpecialSymbols[kEndId]);
  result.source_ranges = ranges_of(source, own, tokens, slots);
  result.source_tokens = std::move(tokens);
}

void align(
    const TranslationSystem& system,
    const SentenceToAlign& sentence,
    TranslationResult& result,
    std::vector<Translation>& translations) {
  auto translation = translations.begin();
  for (Found rest = sentence.found; !rest.empty();) {
    const Found group = first_group(rest, sentence.source.size() + 1);
    for (SourceShares& own : read_group(*system.backend, sentence.source, group))
      set_alignment(*system.text.target, std::move(own), sentence, *translation++);
    rest = rest.subspan(group.size());
  }
  set_source_tokens(*system.text.source, sentence.text, sentence.source, sentence.slots, result);
}

}  // namespace seqconv::internal
