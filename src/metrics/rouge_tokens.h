#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/irregular_forms.h"
#include "metrics/rouge.h"
#include "metrics/word_numbers.h"

namespace seqconv::internal::metrics {

/// A text as numbers of its stems, equal ones where ROUGE sees equal words.
struct RougeText {
  std::vector<uint32_t> tokens;
  std::vector<size_t> ends;  ///< of the sentences, in tokens

  size_t size() const { return tokens.size(); }
};

/// Words of text for ROUGE: the runs of ASCII letters and digits, in small
/// letters, those of more than three letters stemmed; or those of all scripts,
/// of which only ASCII has stems.
class RougeTokenizer {
 public:
  /// Error when the folder of irregular forms that the options name is not one.
  explicit RougeTokenizer(const RougeOptions& options);

  /// Splits at everything else; a line feed ends a sentence. Numbers are those
  /// of the texts since the last forget_much().
  void split(std::string_view text, RougeText& out);

  /// Forgets all numbers when there are very many.
  void forget_much();

  const IrregularForms& irregular_forms() const { return irregular_forms_; }

 private:
  void split_ascii(std::string_view text, RougeText& out);
  void split_unicode(std::string_view text, RougeText& out);
  void take_run(std::string_view letters);
  void end_word(RougeText& out);
  size_t take_letter(std::string_view text, size_t at);
  std::string stem_of(const std::string& word) const;

  bool stem_;
  RougeStyle style_;
  RougeWords kind_;
  IrregularForms irregular_forms_;
  std::string word_;
  WordNumbers words_;  ///< as they are written
  WordNumbers stems_;
  std::vector<uint32_t> stem_numbers_;  ///< by the number of a word
};

}  // namespace seqconv::internal::metrics
