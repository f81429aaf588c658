#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "cli/verbs/request_reader.h"
#include "cli/verbs/verbs.h"
#include "pipeline/translator.h"

namespace seqconv::internal::verbs {

using Translations = std::vector<Translation>;

/// Writes what became of the lines of an input, as text or as JSON: of a line
/// all translations, or of a summary its text alone.
class ResultWriter {
 public:
  /// `several`: results of one line are a list.
  ResultWriter(const TranslateArguments& arguments, OutputFormat format, bool several);

  /// One line, or several of text where there are several results. The line
  /// failed where its origin says so; `number` is the line's own.
  void write(
      const RequestOrigin& origin,
      const TranslationResult& result,
      int64_t number,
      std::ostream& out) const;

 private:
  std::string result_object(const RequestOrigin& origin, const TranslationResult& result) const;
  std::string text_line(const Translation& translation) const;

  OutputFormat format_;
  bool several_;
  bool summaries_;
  Alignments alignments_;
  std::string key_;  // of the results
};

}  // namespace seqconv::internal::verbs
