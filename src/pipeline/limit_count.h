#pragma once

#include <cstdint>
#include <string>

#include "pipeline/translator.h"

namespace seqconv::internal {

/// Counts translations that end at their limit of length: loops, mostly.
struct LimitCount {
  int64_t translations = 0;
  int64_t at_limit = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    v("translations", translations, "Translations that are not empty");
    v("at_limit", at_limit, "Translations of them that have as many tokens as they may");
  }

  void add(const TranslationOutcome& result);
  LimitCount& operator+=(const LimitCount& other);
  /// "81 of 2035 translations ...", naming the options that change it; "" where fewer than a
  /// hundredth of them end so, or fewer than three.
  std::string warning(const OptionNames& names) const;
};

}  // namespace seqconv::internal
