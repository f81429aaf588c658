#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace seqconv::internal::moses {

/// Words after which a dot is no full stop.
struct Prefixes {
  std::unordered_set<std::string> always;
  std::unordered_set<std::string> before_numbers;  ///< only there ("No. 5")
};

/// The nonbreaking prefixes of a language; those of English for a language
/// without a list. Words with a dot inside are left out, as any of them with a
/// letter keeps its last dot.
Prefixes prefixes_of(std::string_view language);

}  // namespace seqconv::internal::moses
