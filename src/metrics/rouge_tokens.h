#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "irregular_forms.h"
#include "seqconv/metrics/rouge.h"

namespace seqconv::metrics {

/// A text as numbers of its stems, equal ones where ROUGE sees equal words.
struct RougeText {
  std::vector<uint32_t> tokens;
  std::vector<size_t> ends;  ///< of the sentences, in tokens

  size_t size() const { return tokens.size(); }
};

/// Words of text for ROUGE: the runs of ASCII letters and digits, in small
/// letters, those of more than three letters stemmed.
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
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const {
      return std::hash<std::string_view>{}(word);
    }
  };
  using Numbers =
      std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>>;

  void end_word(RougeText& out);
  size_t take_letter(std::string_view text, size_t at);
  uint32_t number_of_stem(const std::string& word);

  bool stem_;
  RougeStyle style_;
  IrregularForms irregular_forms_;
  std::string word_;
  Numbers words_;  ///< as they are written
  Numbers stems_;
};

}  // namespace seqconv::metrics
