#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace seqconv::internal {

/// UsageError unless `language` is a code of two or three small letters; `key`
/// begins the message. Any such code is taken: the languages below have rules
/// of their own, all others are tokenised like German, with the abbreviations
/// of English (as in sacremoses).
void check_language(std::string_view language, const std::string& key);

/// Says how a MosesTokenizer writes its tokens.
struct MosesOptions {
  /// & | < > ' " [ ] as &amp; &#124; &lt; &gt; &apos; &quot; &#91; &#93;
  bool escape = false;
  /// Hyphens between letters or digits become tokens: "well @-@ known".
  bool split_dashes = false;
};

/// The tokeniser of the Moses toolkit (Koehn et al. 2007), as the Python
/// package sacremoses 0.1.1 has it.
///
/// Signs are split off, but for dots of numbers and abbreviations and for
/// commas between digits. Special by language are apostrophes (en: "don't" is
/// "don 't"; fr, it: "l' homme"; elsewhere a token of its own), the
/// abbreviations after which a dot stays (as bn ca cs de en es et fi fr ga gu
/// hi hu is it kn lt lv ml mni mr nl or pa pl pt ro ru sk sl sv ta tdt te yue
/// zh, else those of English), and for zh, ja, ko and cjk the letters of their
/// scripts, which elsewhere are tokens one by one. docs/tokenization.md lists
/// where sacremoses differs.
///
/// Time is linear in the line's length. Safe to use from several threads.
class MosesTokenizer {
 public:
  /// UsageError when `language` is not a code (see check_language).
  explicit MosesTokenizer(const std::string& language, const MosesOptions& options = {});
  ~MosesTokenizer();

  /// The tokens of a line with single blanks between them. Any bytes will do:
  /// an ill-formed sequence reads as U+FFFD. Control characters that are not
  /// white space (U+0000 to U+001F) are left out.
  std::string tokenize(std::string_view line) const;

 private:
  class Rules;
  std::unique_ptr<const Rules> rules_;
};

/// Text from Moses tokens: signs go back to their words, "@-@" becomes a hyphen
/// again, escaped signs are themselves again. It guesses what tokenising loses
/// (runs of blanks, which way a quotation mark faced).
///
/// As in sacremoses 0.1.1. Special are en (contractions, possessive s'), fr
/// (blank before ? ! : ; \ %), fr, it and ga ("l' homme" is "l'homme"), cs
/// (decimal numbers, quotation marks) and ko (blanks between words stay,
/// which other languages lose between Chinese and Japanese ones).
///
/// Time is linear in the text's length. Safe to use from several threads.
class MosesDetokenizer {
 public:
  /// UsageError when `language` is not a code (see check_language).
  explicit MosesDetokenizer(const std::string& language);

  /// The text of tokens with white space between them; any bytes will do.
  std::string detokenize(std::string_view tokens) const;

  /// The signs that a token stands for: escaped ones, and "-" of "@-@".
  static std::string unescape(std::string_view token);

 private:
  std::string language_;
};

}  // namespace seqconv::internal
