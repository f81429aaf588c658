#include "seqconv/pipeline/perplexity.h"

#include <cstdio>
#include <istream>
#include <ostream>

#include "engine/verbs.h"
#include "seqconv/base/log.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {
namespace {

TextCost measure(
    const LoadedLanguageModel& model,
    const PerplexityArguments& arguments,
    std::istream& in) {
  PerplexityMeter meter(
      model,
      {.block = arguments.block,
       .context_window = arguments.context_window,
       .batch_tokens = arguments.batch_tokens});
  LineReader lines(in, "standard input", BadBytes::kReplace);
  for (std::string line; lines.next(line);)
    meter.add_line(line, lines.where());
  if (lines.replaced_lines() > 0)
    log_warning(
        lines.replaced_lines(),
        " input lines held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
  return meter.finish();
}

Json to_json(const TextCost& cost) {
  const auto rate = [&](int64_t count) {
    return cost.bits / static_cast<double>(count);
  };
  return {
      {"tokens", cost.tokens},
      {"words", cost.words},
      {"characters", cost.characters},
      {"bytes", cost.bytes},
      {"unknown_tokens", cost.unknown},
      {"bits", cost.bits},
      {"perplexity_per_token", TextCost::perplexity(cost.bits, cost.tokens)},
      {"perplexity_per_word", TextCost::perplexity(cost.bits, cost.words)},
      {"bits_per_token", rate(cost.tokens)},
      {"bits_per_word", rate(cost.words)},
      {"bits_per_character", rate(cost.characters)},
      {"bits_per_byte", rate(cost.bytes)}};
}

}  // namespace

void perplexity(
    const PerplexityArguments& arguments,
    std::istream& in,
    std::ostream& out) {
  set_threads(arguments.threads);
  const LoadedLanguageModel model = load_language_model(arguments.model);
  const Json result = to_json(measure(model, arguments, in));
  if (arguments.format == OutputFormat::kJson) {
    out << result.dump() << '\n';
    return;
  }
  for (const auto& [key, value] : result.items()) {
    char number[64];
    if (value.is_number_integer())
      std::snprintf(
          number,
          sizeof number,
          "%lld",
          static_cast<long long>(value.get<int64_t>()));
    else
      std::snprintf(number, sizeof number, "%.6g", value.get<double>());
    out << key << ": " << number << '\n';
  }
}

}  // namespace seqconv::engine
