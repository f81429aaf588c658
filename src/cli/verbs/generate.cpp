#include <algorithm>
#include <cstdio>
#include <ostream>

#include "base/log.h"
#include "cli/verbs/files_in_use.h"
#include "cli/verbs/verbs.h"
#include "pipeline/generator.h"

namespace seqconv::internal::verbs {
namespace {

std::string summary(const GenerationReport& report) {
  const auto rate = [](int64_t tokens, double seconds) {
    return static_cast<double>(tokens) / std::max(seconds, 1e-9);
  };
  char text[200];
  std::snprintf(
      text,
      sizeof text,
      "read %lld tokens in %.2f s, generated %lld in %.2f s: %.1f tokens/s, %.3f bits a token",
      static_cast<long long>(report.prompt_tokens),
      report.prompt_seconds,
      static_cast<long long>(report.tokens),
      report.seconds,
      rate(report.tokens, report.seconds),
      -report.log2_probability / static_cast<double>(std::max<int64_t>(report.tokens, 1)));
  return text;
}

}  // namespace

void generate(const GenerateArguments& arguments, const BackendOpener& opener, std::ostream& out) {
  validate(arguments.sampling, arguments.names);
  const FilesInUse files({arguments.model});
  const LanguageSystem model = open_language_model(arguments.model, opener);
  SamplingOptions sampling = arguments.sampling;
  sampling.seed = static_cast<uint64_t>(arguments.seed);
  char last = '\n';
  const GenerationReport report = generate_text(
      model,
      arguments.prompt,
      {.length = arguments.length,
       .sampling = sampling,
       .workers = arguments.workers,
       .names = arguments.names},
      [&](const std::string& text) {
        out << text;
        out.flush();
        last = text.back();
      });
  if (last != '\n')
    out << '\n';
  out.flush();
  files.check_not_written();
  if (arguments.stats)
    log_info(summary(report), " (", model.backend->name(), ")");
}

}  // namespace seqconv::internal::verbs
