#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal {

/// A language's name in English, "Portuguese (Brazil)" for "pt-BR"; the code itself where it is
/// not known.
std::string language_name(std::string_view code);

/// One spelling for the codes that mean the same: "zh" and "zh-CN" are "zh-Hans", "zt" and
/// "zh-TW" are "zh-Hant", "pb" is "pt-BR"; '_' counts as '-', case does not.
std::string normal_code(std::string_view code);

}  // namespace seqconv::internal
