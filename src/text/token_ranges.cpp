#include "text/token_ranges.h"

#include <algorithm>
#include <span>

#include "base/characters.h"
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

/// The fewest characters to pass over.
Skip find_agreement(Rest text, Rest tokens) {
  constexpr size_t kFurthest = 64;
  for (size_t sum = 1; sum <= kFurthest; ++sum)
    for (size_t a = 0; a <= std::min(sum, text.size()); ++a)
      if (sum - a <= tokens.size() && agree(text.subspan(a), tokens.subspan(sum - a)))
        return {a, sum - a};
  return {};
}

/// Collects the ranges.
class RangeFinder {
 public:
  RangeFinder(std::string_view text, const std::vector<std::string>& surfaces)
      : text_(fold(text)), written_(write(surfaces)), ranges_(surfaces.size(), kNone) {}

  std::vector<ByteRange> run() {
    const std::vector<Folded> folded = fold(written_.text);
    for (Rest text = text_, tokens = folded; !text.empty() && !tokens.empty();) {
      Skip step;
      if (text.front().c != tokens.front().c)
        step = find_agreement(text, tokens);
      take(text.first(step.text), tokens.first(step.tokens));
      text = text.subspan(step.text);
      tokens = tokens.subspan(step.tokens);
    }
    fill_gaps();
    return ranges_;
  }

 private:
  static constexpr ByteRange kNone{-1, -1};

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
  Written written_;
  std::vector<ByteRange> ranges_;
};

}  // namespace

std::vector<ByteRange> find_ranges(
    std::string_view text, const std::vector<std::string>& surfaces) {
  return RangeFinder(text, surfaces).run();
}

}  // namespace seqconv::internal
