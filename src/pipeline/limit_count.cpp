#include "pipeline/limit_count.h"

#include "base/error.h"

namespace seqconv::internal {

void LimitCount::add(const TranslationOutcome& result) {
  translations += !result.translations.empty();
  at_limit += result.at_limit;
}

LimitCount& LimitCount::operator+=(const LimitCount& other) {
  translations += other.translations;
  at_limit += other.at_limit;
  return *this;
}

std::string LimitCount::warning(const OptionNames& names) const {
  if (at_limit < 3 || 100 * at_limit < translations)
    return "";
  return concat(
      at_limit,
      " of ",
      translations,
      " translations have as many tokens as they may and are cut there, as loops are: see ",
      names("no_repeat_ngram"),
      ", ",
      names("max_length_a"),
      " and ",
      names("max_length_b"),
      ", or train longer");
}

}  // namespace seqconv::internal
