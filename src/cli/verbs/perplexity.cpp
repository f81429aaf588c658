#include "pipeline/perplexity.h"

#include <cstdio>
#include <istream>
#include <ostream>

#include "base/log.h"
#include "base/options.h"
#include "cli/verbs/failed_lines.h"
#include "cli/verbs/files_in_use.h"
#include "cli/verbs/verbs.h"
#include "text/corpus/sentence_reader.h"

namespace seqconv::internal::verbs {
namespace {

SentenceReader open(
    const PerplexityArguments& arguments, const LanguageSystem& model, std::istream& in) {
  if (arguments.input.empty())
    return {in, "standard input", BadBytes::kReplace};
  return {arguments.input, model.text.text->vocabulary().size(), BadBytes::kReplace};
}

/// The cost of all lines but those that failed.
TextCost measure(
    const LanguageSystem& model,
    const PerplexityArguments& arguments,
    SentenceReader& sentences,
    FailedLines& failed) {
  PerplexityMeter meter(
      model,
      {.block = arguments.block,
       .context_window = arguments.context_window,
       .batch_tokens = arguments.batch_tokens,
       .workers = arguments.workers,
       .names = arguments.names});
  while (sentences.next()) {
    const std::string where = sentences.where();
    const auto ids = sentences.is_text() ? std::vector<int32_t>() : sentences.ids();
    try {
      if (sentences.is_text())
        meter.add_line(sentences.line(), where);
      else
        meter.add_ids(ids, where);
    } catch (const Error& error) {
      failed.add(sentences.count(), error.what());
    }
  }
  warn_of_replaced_lines(sentences.replaced_lines());
  try {
    return meter.finish();
  } catch (const Error&) {
    failed.finish(sentences.count());  // says why nothing is left
    throw;
  }
}

Json to_json(const TextCost& cost) {
  const auto rate = [&](int64_t count) { return cost.bits / static_cast<double>(count); };
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

void write(const Json& result, OutputFormat format, std::ostream& out) {
  if (format == OutputFormat::kJson) {
    out << result.dump() << '\n';
    return;
  }
  for (const auto& [key, value] : result.items()) {
    char number[64];
    if (value.is_number_integer())
      std::snprintf(number, sizeof number, "%lld", static_cast<long long>(value.get<int64_t>()));
    else
      std::snprintf(number, sizeof number, "%.6g", value.get<double>());
    out << key << ": " << number << '\n';
  }
}

}  // namespace

void perplexity(
    const PerplexityArguments& arguments,
    const BackendOpener& opener,
    std::istream& in,
    std::ostream& out) {
  const FilesInUse files({arguments.model});
  const LanguageSystem model = open_language_model(arguments.model, opener);
  SentenceReader sentences = open(arguments, model, in);
  FailedLines failed(on_failure(arguments.strict));
  Json result = to_json(measure(model, arguments, sentences, failed));
  files.check_not_written();
  if (failed.any())
    result["failed_lines"] = failed.count();
  write(result, arguments.format, out);
  out.flush();
  failed.finish(sentences.count());
}

}  // namespace seqconv::internal::verbs
