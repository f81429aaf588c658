#include <algorithm>
#include <array>
#include <numeric>

#include "base/characters.h"
#include "base/utf8.h"
#include "metrics/tokenizers.h"

namespace seqconv::internal {
namespace {

// Words of segmented Chinese and Japanese have two characters, of Thai four, in
// the mean; unsegmented stretches are clauses.
constexpr int64_t kLongStretch = 8;

struct LetterCounts {
  std::array<int64_t, kScripts> of{};

  int64_t all() const { return std::reduce(of.begin(), of.end()); }
  int64_t operator[](Script script) const { return of[static_cast<size_t>(script)]; }
  int64_t without_blanks() const { return all() - (*this)[Script::kOther]; }
};

bool is_ascii_letter(char c) {
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z';
}

/// The script, of those whose words stand without blanks between them; the sign of a long vowel
/// is kana.
Script unsegmented_script(char32_t c) {
  if (c == 0x30FC || c == 0xFF70)
    return Script::kKana;
  const Script script = script_of(c);
  return script == Script::kHangul ? Script::kOther : script;
}

void count_letters(std::string_view word, LetterCounts& counts) {
  if (is_ascii(word)) {
    counts.of[0] += std::ranges::count_if(word, is_ascii_letter);
    return;
  }
  for (char32_t c : decode_utf8(word))
    if (is_letter(c) || is_mark(c))
      ++counts.of[static_cast<size_t>(unsegmented_script(c))];
}

/// Of the script with most letters; kana make Japanese of Han.
std::string_view language_of(const LetterCounts& counts) {
  const auto most = std::max_element(counts.of.begin() + 1, counts.of.end());
  switch (static_cast<Script>(most - counts.of.begin())) {
    case Script::kThai:
      return "Thai";
    case Script::kLao:
      return "Lao";
    case Script::kKhmer:
      return "Khmer";
    case Script::kMyanmar:
      return "Burmese";
    case Script::kTibetan:
      return "Tibetan";
    case Script::kKana:
    case Script::kHan:
    case Script::kHangul:
    case Script::kOther:
      break;
  }
  return 10 * counts[Script::kKana] > counts.without_blanks() ? "Japanese" : "Chinese";
}

}  // namespace

std::string_view unsegmented_language(const std::vector<std::string>& lines) {
  LetterCounts counts;
  int64_t blanks = 0;  // between two stretches of such letters
  for (const std::string& line : lines) {
    bool behind_another = false;
    for (std::string_view word : split_words(line)) {
      const int64_t before = counts.without_blanks();
      count_letters(word, counts);
      const bool found = counts.without_blanks() > before;
      blanks += behind_another && found;
      behind_another = found;
    }
  }
  const int64_t found = counts.without_blanks();
  if (2 * found <= counts.all() || found < kLongStretch * blanks)
    return "";
  return language_of(counts);
}

}  // namespace seqconv::internal
