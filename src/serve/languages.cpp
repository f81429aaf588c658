#include "serve/languages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace seqconv::internal {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

// ISO 639-1 in its order, with some of 639-3 and scripts.
constexpr auto kNames = std::to_array<Entry>({
    {"af", "Afrikaans"},
    {"am", "Amharic"},
    {"ar", "Arabic"},
    {"as", "Assamese"},
    {"az", "Azerbaijani"},
    {"be", "Belarusian"},
    {"bg", "Bulgarian"},
    {"bn", "Bengali"},
    {"br", "Breton"},
    {"bs", "Bosnian"},
    {"ca", "Catalan"},
    {"ceb", "Cebuano"},
    {"cs", "Czech"},
    {"cy", "Welsh"},
    {"da", "Danish"},
    {"de", "German"},
    {"dsb", "Lower Sorbian"},
    {"el", "Greek"},
    {"en", "English"},
    {"eo", "Esperanto"},
    {"es", "Spanish"},
    {"et", "Estonian"},
    {"eu", "Basque"},
    {"fa", "Persian"},
    {"fi", "Finnish"},
    {"fil", "Filipino"},
    {"fo", "Faroese"},
    {"fr", "French"},
    {"fy", "Western Frisian"},
    {"ga", "Irish"},
    {"gd", "Scottish Gaelic"},
    {"gl", "Galician"},
    {"gu", "Gujarati"},
    {"ha", "Hausa"},
    {"he", "Hebrew"},
    {"hi", "Hindi"},
    {"hr", "Croatian"},
    {"hsb", "Upper Sorbian"},
    {"ht", "Haitian Creole"},
    {"hu", "Hungarian"},
    {"hy", "Armenian"},
    {"id", "Indonesian"},
    {"ig", "Igbo"},
    {"is", "Icelandic"},
    {"it", "Italian"},
    {"ja", "Japanese"},
    {"jv", "Javanese"},
    {"ka", "Georgian"},
    {"kk", "Kazakh"},
    {"km", "Khmer"},
    {"kn", "Kannada"},
    {"ko", "Korean"},
    {"ku", "Kurdish"},
    {"ky", "Kyrgyz"},
    {"la", "Latin"},
    {"lb", "Luxembourgish"},
    {"lo", "Lao"},
    {"lt", "Lithuanian"},
    {"lv", "Latvian"},
    {"mg", "Malagasy"},
    {"mi", "Maori"},
    {"mk", "Macedonian"},
    {"ml", "Malayalam"},
    {"mn", "Mongolian"},
    {"mr", "Marathi"},
    {"ms", "Malay"},
    {"mt", "Maltese"},
    {"my", "Burmese"},
    {"nb", "Norwegian Bokmål"},
    {"ne", "Nepali"},
    {"nl", "Dutch"},
    {"nn", "Norwegian Nynorsk"},
    {"no", "Norwegian"},
    {"oc", "Occitan"},
    {"or", "Odia"},
    {"pa", "Punjabi"},
    {"pl", "Polish"},
    {"ps", "Pashto"},
    {"pt", "Portuguese"},
    {"pt-BR", "Portuguese (Brazil)"},
    {"rm", "Romansh"},
    {"ro", "Romanian"},
    {"ru", "Russian"},
    {"sd", "Sindhi"},
    {"si", "Sinhala"},
    {"sk", "Slovak"},
    {"sl", "Slovenian"},
    {"so", "Somali"},
    {"sq", "Albanian"},
    {"sr", "Serbian"},
    {"sv", "Swedish"},
    {"sw", "Swahili"},
    {"ta", "Tamil"},
    {"te", "Telugu"},
    {"tg", "Tajik"},
    {"th", "Thai"},
    {"tk", "Turkmen"},
    {"tl", "Tagalog"},
    {"tr", "Turkish"},
    {"tt", "Tatar"},
    {"ug", "Uyghur"},
    {"uk", "Ukrainian"},
    {"ur", "Urdu"},
    {"uz", "Uzbek"},
    {"vi", "Vietnamese"},
    {"xh", "Xhosa"},
    {"yi", "Yiddish"},
    {"yo", "Yoruba"},
    {"zh-Hans", "Chinese"},
    {"zh-Hant", "Chinese (traditional)"},
    {"zu", "Zulu"},
});

constexpr auto kAliases = std::to_array<Entry>({
    {"zh", "zh-Hans"},
    {"zh-cn", "zh-Hans"},
    {"zh-hans", "zh-Hans"},
    {"zh-sg", "zh-Hans"},
    {"zt", "zh-Hant"},
    {"zh-hant", "zh-Hant"},
    {"zh-hk", "zh-Hant"},
    {"zh-tw", "zh-Hant"},
    {"pb", "pt-BR"},
    {"pt-br", "pt-BR"},
});

std::string lowered(std::string_view code) {
  std::string lower(code);
  for (char& c : lower)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

std::string language_name(std::string_view code) {
  const std::string normal = normal_code(code);
  const auto found = std::ranges::find(kNames, std::string_view(normal), &Entry::first);
  return found == kNames.end() ? std::string(code) : std::string(found->second);
}

std::string normal_code(std::string_view code) {
  std::string lower = lowered(code);
  const auto found = std::ranges::find(kAliases, std::string_view(lower), &Entry::first);
  return found == kAliases.end() ? lower : std::string(found->second);
}

}  // namespace seqconv::internal
