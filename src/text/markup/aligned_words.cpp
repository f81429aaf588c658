#include "text/markup/aligned_words.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/characters.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

/// The numbers of the units that the range touches: from the first to before the second.
std::pair<size_t, size_t> units_in(std::span<const ByteRange> units, ByteRange range) {
  const auto first = std::ranges::upper_bound(units, range.begin, {}, &ByteRange::end);
  const auto last = std::ranges::lower_bound(units, range.end, {}, &ByteRange::begin);
  const auto begin = static_cast<size_t>(first - units.begin());
  return {begin, std::max(begin, static_cast<size_t>(last - units.begin()))};
}

}  // namespace

std::vector<ByteRange> word_units(std::string_view text) {
  std::vector<ByteRange> units;
  bool goes_on = false;
  for (size_t position = 0; position < text.size();) {
    const auto begin = static_cast<int64_t>(position);
    const char32_t c = next_code_point(text, position);
    const auto end = static_cast<int64_t>(position);
    const bool joins = is_part_of_word(c) && !is_written_without_spaces(c);
    if (!units.empty() && units.back().end == begin && (is_mark(c) || (goes_on && joins)))
      units.back().end = end;
    else if (!is_space(c))
      units.push_back({begin, end});
    goes_on = joins || (is_mark(c) && goes_on);
  }
  return units;
}

std::vector<AlignedRanges> aligned_words(
    std::string_view source, const RunTranslation& translation) {
  const std::vector<ByteRange> sources = word_units(source), targets = word_units(translation.text);
  std::vector<std::pair<size_t, size_t>> pairs;  // target, source
  for (const AlignedRanges& aligned : translation.aligned) {
    const auto [first, end] = units_in(sources, aligned.source);
    const auto [first_target, end_target] = units_in(targets, aligned.target);
    for (size_t target = first_target; target < end_target; ++target)
      for (size_t i = first; i < end; ++i)
        pairs.emplace_back(target, i);
  }
  std::ranges::sort(pairs);
  const auto same = std::ranges::unique(pairs);
  pairs.erase(same.begin(), same.end());
  std::vector<AlignedRanges> words;
  words.reserve(pairs.size());
  for (const auto& [target, i] : pairs)
    words.push_back({sources[i], targets[target]});
  return words;
}

}  // namespace seqconv::internal
