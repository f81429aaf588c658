#include "text/token_ranges.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/characters.h"
#include "base/random.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

/// A character, folded, and where it comes from: bytes of a text.
struct Folded {
  char32_t c;
  size_t begin;
  size_t end;
};

/// The characters of a text that are no white space.
std::vector<Folded> fold(std::string_view text) {
  std::vector<Folded> all;
  std::u32string parts;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    parts.clear();
    append_folded(next_code_point(text, position), parts);
    for (const char32_t c : parts)
      if (!is_space(c))
        all.push_back({c, begin, position});
  }
  return all;
}

/// Tokens written one behind the other, and the token of each byte.
struct Written {
  std::string text;
  std::vector<size_t> token_of_byte;
};

Written write(const std::vector<std::string>& surfaces) {
  Written written;
  for (size_t token = 0; token < surfaces.size(); ++token) {
    written.text += surfaces[token];
    written.token_of_byte.resize(written.text.size(), token);
  }
  return written;
}

/// Characters to pass over until two texts go on alike behind a difference.
struct Skip {
  size_t text = 1;
  size_t tokens = 1;
};

using Rest = std::span<const Folded>;

/// True where the rests begin alike for two characters, or to the end of one.
bool agree(Rest text, Rest tokens) {
  const size_t length = std::min({text.size(), tokens.size(), size_t{2}});
  return length > 0 &&
      std::equal(
             text.begin(),
             text.begin() + static_cast<std::ptrdiff_t>(length),
             tokens.begin(),
             [](const Folded& a, const Folded& b) { return a.c == b.c; });
}

/// Texts that differ are compared so far, in characters of both.
constexpr size_t kNear = 64;

/// The fewest characters to pass over, of both kNear at most.
std::optional<Skip> find_near(Rest text, Rest tokens) {
  for (size_t sum = 1; sum <= kNear; ++sum)
    for (size_t a = 0; a <= std::min(sum, text.size()); ++a)
      if (sum - a <= tokens.size() && agree(text.subspan(a), tokens.subspan(sum - a)))
        return Skip{a, sum - a};
  return {};
}

/// Characters that normalisations leave out, runs of them whole.
bool may_be_dropped(const Folded& folded) {
  return folded.c < 0x20 || (folded.c >= 0x7F && folded.c < 0xA0) || is_mark(folded.c) ||
      is_default_ignorable(folded.c);
}

/// Characters that may have been dropped, at the start of a text.
size_t count_dropped(Rest text) {
  return static_cast<size_t>(std::ranges::find_if_not(text, may_be_dropped) - text.begin());
}

/// Places of runs of kLength characters in a text, found in time that hardly depends on how
/// far they are.
class RunPlaces {
 public:
  static constexpr size_t kLength = 6;

  explicit RunPlaces(Rest text) : text_(text) {
    for (size_t i = 0; i + kLength <= text.size(); ++i)
      places_.emplace_back(hash(text.subspan(i)), i);
    std::ranges::sort(places_);
  }

  /// The first place of what `run` begins with, at `from` or behind it.
  std::optional<size_t> find(Rest run, size_t from) const {
    const auto found = std::ranges::lower_bound(places_, std::pair(hash(run), from));
    if (found == places_.end() || hash(text_.subspan(found->second)) != hash(run))
      return {};
    return found->second;
  }

 private:
  static uint64_t hash(Rest run) {
    uint64_t key = 0;
    for (const Folded& folded : run.first(kLength))
      key = mix_words(key, folded.c);
    return key;
  }

  Rest text_;
  std::vector<std::pair<uint64_t, size_t>> places_;
};

/// Characters at the end that are alike.
size_t common_end(Rest text, Rest tokens) {
  size_t length = 0;
  while (length < std::min(text.size(), tokens.size()) &&
         text[text.size() - 1 - length].c == tokens[tokens.size() - 1 - length].c)
    ++length;
  return length;
}

/// Collects the ranges.
class RangeFinder {
 public:
  RangeFinder(std::string_view text, const std::vector<std::string>& surfaces)
      : text_(fold(text)), written_(write(surfaces)), ranges_(surfaces.size(), kNone) {}

  std::vector<ByteRange> run() {
    const std::vector<Folded> folded = fold(written_.text);
    for (Rest text = text_, tokens = folded; !text.empty() && !tokens.empty();) {
      const Skip step = text.front().c == tokens.front().c ? Skip() : find_agreement(text, tokens);
      take(text.first(step.text), tokens.first(step.tokens));
      text = text.subspan(step.text);
      tokens = tokens.subspan(step.tokens);
    }
    fill_gaps();
    return ranges_;
  }

 private:
  static constexpr ByteRange kNone{-1, -1};

  /// The characters to pass over to where texts agree, none where they do. The work is in
  /// proportion to them: it is linear in the texts' lengths.
  Skip find_agreement(Rest text, Rest tokens) {
    if (text.empty())
      return {0, tokens.size()};
    if (text.front().c == tokens.front().c)
      return {0, 0};
    const size_t run = count_dropped(text.first(std::min(text.size(), kNear)));
    if (run > 0 && run < text.size() && text[run].c == tokens.front().c)
      return {run, 0};
    if (const auto near = find_near(text, tokens))
      return *near;
    if (run == 0 || may_be_dropped(tokens.front()))
      return find_far(text, tokens);
    const size_t dropped = count_dropped(text);
    const Skip behind = find_agreement(text.subspan(dropped), tokens);
    return {dropped + behind.text, behind.tokens};
  }

  /// The fewest characters to pass over to a run that is in both, however far it is; all but
  /// what the ends have in common where there is none.
  Skip find_far(Rest text, Rest tokens) {
    if (!places_)
      places_.emplace(text_);
    const size_t at = text_.size() - text.size();
    std::optional<Skip> best;
    const auto most = [&] { return best ? best->text + best->tokens : tokens.size(); };
    for (size_t b = 0; b + RunPlaces::kLength <= tokens.size() && b < most(); ++b)
      if (const auto place = places_->find(tokens.subspan(b), at);
          place && (!best || *place - at + b < most()))
        best = {*place - at, b};
    if (best)
      return *best;
    const size_t same = common_end(text, tokens);
    return {text.size() - same, tokens.size() - same};
  }

  /// Gives all of `text` to the tokens of these characters.
  void take(Rest text, Rest tokens) {
    if (text.empty() || tokens.empty())
      return;
    for (const Folded& folded : tokens)
      for (size_t byte = folded.begin; byte < folded.end; ++byte) {
        ByteRange& range = ranges_[written_.token_of_byte[byte]];
        if (range.begin < 0)
          range.begin = static_cast<int64_t>(text.front().begin);
        range.end = std::max(range.end, static_cast<int64_t>(text.back().end));
      }
  }

  void fill_gaps() {
    int64_t end = 0;
    for (ByteRange& range : ranges_) {
      if (range.begin < 0)
        range = {end, end};
      end = range.end;
    }
  }

  std::vector<Folded> text_;
  std::optional<RunPlaces> places_;  // of text_, made when they are wanted
  Written written_;
  std::vector<ByteRange> ranges_;
};

}  // namespace

std::vector<ByteRange> find_ranges(
    std::string_view text, const std::vector<std::string>& surfaces) {
  return RangeFinder(text, surfaces).run();
}

}  // namespace seqconv::internal
