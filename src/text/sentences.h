#pragma once

#include <string_view>
#include <vector>

/// Sentences of running text.
namespace seqconv::internal {

/// The sentences of a text, each with the white space behind it: views that cover `text`. They
/// end where Unicode's default rules have it (UAX #29, version 15.0), but never behind an
/// abbreviation that CLDR knows in the language ("Dr. Meier"), nor behind an ordinal of one or
/// two digits in a language that writes it with a full stop ("am 3. Oktober"). `language` is a
/// code such as "de", "pt-BR" or "pt_BR"; "" and others that are not known have neither.
/// Ill-formed UTF-8 reads as U+FFFD. Takes time linear in the text.
std::vector<std::string_view> split_sentences(
    std::string_view text, std::string_view language = "");

/// Parts of a sentence of at most `most` characters, at least 1: views that cover it. They end
/// behind the last white space of these, or where there is none behind the last character, marks
/// that follow it included.
std::vector<std::string_view> split_long(std::string_view sentence, size_t most);

}  // namespace seqconv::internal
