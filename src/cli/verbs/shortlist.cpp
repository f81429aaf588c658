#include "pipeline/shortlist.h"

#include <cstdio>

#include "base/log.h"
#include "base/stopwatch.h"
#include "cli/verbs/verbs.h"

namespace seqconv::internal::verbs {
namespace fs = std::filesystem;
namespace {

/// Error where the list would be written over what it is learned from.
void check_shortlist_output(const ShortlistArguments& arguments) {
  check_output_file(arguments.output, find_model(arguments.model));
  std::error_code none;
  for (const auto* files : {&arguments.sources, &arguments.targets})
    for (const std::string& file : *files)
      SEQCONV_CHECK(
          !fs::equivalent(arguments.output, file, none),
          "the output '",
          arguments.output,
          "' is a text to learn from, which would be lost: choose another name");
}

void warn_of_unknown_symbols(const std::vector<std::string>& files, const SymbolCount& symbols) {
  if (symbols.is_mostly_unknown())
    log_warning(files.front(), ": ", symbols.warning());
}

std::string summary(const ShortlistReport& report, double seconds, int64_t vocabulary) {
  char text[240];
  std::snprintf(
      text,
      sizeof text,
      "learned a shortlist from %lld pairs (%lld with an empty side left out) in %.1f s: %.0f of "
      "%lld words a sentence, %.1f %% of its translation's among them",
      static_cast<long long>(report.pairs),
      static_cast<long long>(report.empty),
      seconds,
      report.listed,
      static_cast<long long>(vocabulary),
      100 * report.covered);
  return text;
}

}  // namespace

void shortlist(const ShortlistArguments& arguments) {
  arguments.options.validate(arguments.names);
  const TranslationDescription model =
      read_translation_description(find_model(arguments.model).folder);
  check_shortlist_output(arguments);
  Stopwatch watch;
  ShortlistReport report;
  const Shortlist learned =
      Shortlist::learn(model.text, arguments.sources, arguments.targets, arguments.options, report);
  learned.write(arguments.output);
  warn_of_unknown_symbols(arguments.sources, report.source_symbols);
  warn_of_unknown_symbols(arguments.targets, report.target_symbols);
  log_info(summary(report, watch.lap(), model.vocabulary().target));
}

}  // namespace seqconv::internal::verbs
