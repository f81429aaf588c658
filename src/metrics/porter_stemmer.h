#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal::metrics {

/// Whose variant of Porter's stemmer.
enum class StemmerRules {
  kRouge155,  ///< ROUGE-1.5.5.pl: of the endings of step 4 a word may lose one
              ///< of the long list, then "ment", then "ent" or "ion"
  kNltk,      ///< NLTK's default: a list of irregular words, "ies" and "ied" of
              ///< words of four letters, "y" behind consonants only, "fulli"
};

/// The stem of a word of small ASCII letters and digits (Porter 1980, with his
/// later "bli" and "logi"). Both programs that use it leave words of up to
/// three letters alone; that is up to the caller.
std::string porter_stem(std::string_view word, StemmerRules rules);

}  // namespace seqconv::internal::metrics
