#include "text/markup/place_elements.h"

#include <algorithm>
#include <numeric>

#include "base/characters.h"
#include "base/utf8.h"
#include "text/markup/aligned_words.h"

namespace seqconv::internal {
namespace {

// A word of no known origin joins an element only between words that belong to it.
constexpr double kUnaligned = -0.05;

bool overlap(ByteRange one, ByteRange other) {
  return one.begin < other.end && other.begin < one.end;
}

/// A stretch of units: from `begin` to before `end`.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
  double score = 0;
};

class Placement {
 public:
  Placement(
      std::string_view source,
      const std::vector<InlineElement>& elements,
      const RunTranslation& translation)
      : source_(source),
        elements_(elements),
        units_(word_units(translation.text)),
        sources_(units_.size()),
        children_(elements.size()),
        stretches_(elements.size()) {
    for (const AlignedRanges& pair : translation.aligned) {
      auto unit = std::ranges::upper_bound(
          units_, pair.target.begin, {}, [](ByteRange range) { return range.end; });
      for (; unit != units_.end() && unit->begin < pair.target.end; ++unit)
        sources_[static_cast<size_t>(unit - units_.begin())].push_back(pair.source);
    }
    for (size_t i = 0; i < elements.size(); ++i)
      (elements[i].parent < 0 ? roots_ : children_[static_cast<size_t>(elements[i].parent)])
          .push_back(i);
  }

  std::vector<ByteRange> ranges() {
    const ByteRange whole{0, static_cast<int64_t>(source_.size())};
    place(roots_, whole, {0, units_.size()});
    for (size_t i = 0; i < elements_.size(); ++i)  // parents first
      place(children_[i], elements_[i].text, stretches_[i]);
    std::vector<ByteRange> ranges;
    for (const Stretch& stretch : stretches_)
      ranges.push_back(range_of(stretch));
    return ranges;
  }

 private:
  ByteRange range_of(const Stretch& stretch) const {
    if (stretch.begin < stretch.end)
      return {units_[stretch.begin].begin, units_[stretch.end - 1].end};
    const int64_t place = stretch.begin == 0 ? (units_.empty() ? 0 : units_.front().begin)
                                             : units_[stretch.begin - 1].end;
    return {place, place};
  }

  /// Gives elements that share a parent their parts of its stretch, the surest first.
  void place(const std::vector<size_t>& siblings, ByteRange around, const Stretch& parent) {
    std::vector<size_t> order;
    for (const size_t i : siblings) {
      stretches_[i] = is_all_of(elements_[i].text, around)
          ? Stretch{parent.begin, parent.end, 1e9}
          : best_stretch(elements_[i].text, parent.begin, parent.end);
      order.push_back(i);
    }
    std::ranges::stable_sort(
        order, [&](size_t a, size_t b) { return stretches_[a].score > stretches_[b].score; });
    std::vector<Stretch> taken;
    for (const size_t i : order) {
      Stretch& own = stretches_[i];
      if (own.score > 0 && std::ranges::any_of(taken, [&](const Stretch& other) {
            return own.begin < other.end && other.begin < own.end;
          }))
        own = best_in_gaps(elements_[i].text, taken, parent);
      if (own.score <= 0)
        own = place_behind(elements_[i].text, taken, parent);
      else
        taken.insert(std::ranges::upper_bound(taken, own.begin, {}, &Stretch::begin), own);
    }
  }

  /// True where a part is all that its surroundings hold, but for punctuation and blanks.
  bool is_all_of(ByteRange part, ByteRange around) const {
    if (part.begin >= part.end)
      return false;
    const auto has_words = [&](int64_t begin, int64_t end) {
      for (auto position = static_cast<size_t>(begin); position < static_cast<size_t>(end);)
        if (is_part_of_word(next_code_point(source_, position)))
          return true;
      return false;
    };
    return !has_words(around.begin, part.begin) && !has_words(part.end, around.end) &&
        part.begin == around.begin && part.end == around.end;
  }

  /// Near 1 for a unit whose words are in the part, near -1 for one whose are not.
  double weight(size_t unit, ByteRange part) const {
    const auto& sources = sources_[unit];
    if (sources.empty())
      return kUnaligned;
    const auto inside =
        std::ranges::count_if(sources, [&](ByteRange source) { return overlap(source, part); });
    return (2.0 * static_cast<double>(inside)) / static_cast<double>(sources.size()) - 1;
  }

  Stretch best_stretch(ByteRange part, size_t begin, size_t end) const {
    Stretch best{begin, begin, 0}, here{begin, begin, 0};
    if (part.begin >= part.end)
      return best;
    for (size_t unit = begin; unit < end; ++unit) {
      if (here.score <= 0)
        here = {unit, unit, 0};
      here.score += weight(unit, part);
      here.end = unit + 1;
      if (here.score > best.score)
        best = here;
    }
    return best;
  }

  Stretch best_in_gaps(
      ByteRange part, const std::vector<Stretch>& taken, const Stretch& parent) const {
    Stretch best{parent.begin, parent.begin, 0};
    size_t begin = parent.begin;
    for (size_t i = 0; i <= taken.size(); ++i) {
      const size_t end = i < taken.size() ? taken[i].begin : parent.end;
      const Stretch found = best_stretch(part, begin, end);
      if (found.score > best.score)
        best = found;
      if (i < taken.size())
        begin = taken[i].end;
    }
    return best;
  }

  /// The place behind the unit that the nearest word from before the part became, outside of
  /// what others have taken; the parent's beginning, where there is none.
  Stretch place_behind(
      ByteRange part, const std::vector<Stretch>& taken, const Stretch& parent) const {
    int64_t nearest = -1;
    size_t place = parent.begin;
    for (size_t unit = parent.begin; unit < parent.end; ++unit)
      for (const ByteRange source : sources_[unit])
        if (source.begin < part.begin && source.begin >= nearest) {
          nearest = source.begin;
          place = unit + 1;
        }
    for (const Stretch& other : taken)
      if (place > other.begin && place < other.end)
        place = other.end;
    return {place, place, 0};
  }

  std::string_view source_;
  const std::vector<InlineElement>& elements_;
  std::vector<ByteRange> units_;                 // of the translation
  std::vector<std::vector<ByteRange>> sources_;  // what each is aligned with
  std::vector<size_t> roots_;
  std::vector<std::vector<size_t>> children_;
  std::vector<Stretch> stretches_;
};

}  // namespace

std::vector<ByteRange> place_elements(
    std::string_view source,
    const std::vector<InlineElement>& elements,
    const RunTranslation& translation) {
  return Placement(source, elements, translation).ranges();
}

}  // namespace seqconv::internal
