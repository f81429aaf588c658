#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Answers what the Moses tokeniser asks of characters. The answers are those
/// of sacremoses' lists, which stopped at Unicode 7: ids of a model must not
/// depend on the version of Unicode.
namespace seqconv::internal::moses {

/// Properties, as bits of a mask.
enum Property : uint8_t {
  kSpace = 1,    ///< white space (is_space)
  kJunk = 2,     ///< control characters to leave out
  kAlpha = 4,    ///< letters, but for Han and Hangul
  kAlnum = 8,    ///< kAlpha and digits: not split off
  kNumber = 16,  ///< numerals within kAlnum
  kLower = 32,   ///< small letters
};

/// The properties of characters for one language: zh, ja, ko and cjk count
/// their own scripts as letters.
class Characters {
 public:
  explicit Characters(std::string_view language);

  uint8_t properties(char32_t c) const { return c < kTableSize ? table_[c] : compute(c); }
  bool has(char32_t c, uint8_t any_of) const { return (properties(c) & any_of) != 0; }

 private:
  static constexpr char32_t kTableSize = 0x800;  // letters of two bytes
  uint8_t compute(char32_t c) const;

  const uint8_t* table_;
  uint8_t scripts_ = 0;  ///< letters of which scripts, as bits
};

/// Tells whether `c` is a sign that joins Indic letters; those count as
/// letters.
bool is_joiner(char32_t c);

/// Tells whether `c` is a currency sign.
bool is_currency(char32_t c);

/// Tells whether sacremoses takes `c` for Chinese, Japanese or Korean: blocks
/// of code points, without the first and the last of each.
bool is_cjk(char32_t c);

}  // namespace seqconv::internal::moses
