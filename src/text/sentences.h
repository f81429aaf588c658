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

}  // namespace seqconv::internal
