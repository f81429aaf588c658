#include "seqconv/pipeline/perplexity.h"

#include <cstdio>
#include <istream>
#include <ostream>

#include "engine/verbs.h"
#include "seqconv/base/log.h"
#include "seqconv/base/options.h"
#include "seqconv/data/fairseq_data.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/text/unicode.h"

namespace seqconv::engine {
namespace {

void add_ids(const std::string& file, int64_t vocabulary, PerplexityMeter& to) {
  const auto data = open_fairseq_data(file, vocabulary);
  for (int64_t i = 0; i < data->size(); ++i) {
    const auto ids = data->tokens(i);
    to.add_ids({ids.begin(), ids.end()}, concat(file, ": sentence ", i + 1));
  }
}

void add_text(LineReader lines, PerplexityMeter& meter) {
  for (std::string line; lines.next(line);)
    meter.add_line(line, lines.where());
  if (lines.replaced_lines() > 0)
    log_warning(
        lines.replaced_lines(),
        " input lines held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
}

TextCost measure(
    const LoadedLanguageModel& model,
    const PerplexityArguments& arguments,
    std::istream& in) {
  PerplexityMeter meter(
      model,
      {.block = arguments.block,
       .context_window = arguments.context_window,
       .batch_tokens = arguments.batch_tokens});
  const std::string& input = arguments.input;
  if (input.empty())
    add_text(LineReader(in, "standard input", BadBytes::kReplace), meter);
  else if (is_fairseq_data(input))
    add_ids(input, model.text.text->vocabulary().size(), meter);
  else
    add_text(LineReader(input, BadBytes::kReplace), meter);
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
