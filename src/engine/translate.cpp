#include <algorithm>
#include <chrono>
#include <cstdio>
#include <istream>
#include <ostream>

#include "engine/request_reader.h"
#include "engine/verbs.h"
#include "seqconv/base/log.h"
#include "seqconv/base/options.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/pipeline/translator.h"

namespace seqconv::engine {
namespace {

using Translations = std::vector<Translation>;

// Counts for --stats.
class Meter {
 public:
  void add(const std::vector<Translations>& results) {
    for (const Translations& result : results) {
      ++sentences_;
      if (!result.empty())
        tokens_ += static_cast<int64_t>(result.front().token_scores.size());
    }
  }

  std::string summary() const {
    const std::chrono::duration<double> passed = Clock::now() - start_;
    const double seconds = std::max(passed.count(), 1e-9);
    char text[160];
    std::snprintf(
        text,
        sizeof text,
        "translated %lld sentences into %lld tokens in %.1f s: "
        "%.1f sentences/s, %.1f tokens/s",
        static_cast<long long>(sentences_),
        static_cast<long long>(tokens_),
        seconds,
        static_cast<double>(sentences_) / seconds,
        static_cast<double>(tokens_) / seconds);
    return text;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
  int64_t sentences_ = 0;
  int64_t tokens_ = 0;
};

// The command line's settings over those that the (first) model came with.
SearchOptions merge_search(
    const TranslateArguments& arguments,
    const LoadedModel& model) {
  const Json given = write_options(arguments.search);
  Json merged = write_options(model.decoding);
  for (const std::string& key : arguments.search_given)
    merged[key] = given[key];
  SearchOptions search;
  read_options(merged, "", search);
  search.validate("");
  return search;
}

// What was asked for beyond learned positions is not given in silence.
void warn_of_positions(
    const TranslateArguments& arguments,
    const Translator& translator) {
  const SearchOptions& search = arguments.search;
  const int64_t most = translator.positions() - 1;
  for (const auto& [key, value] :
       {std::pair{"max_length_b", search.max_length_b},
        {"min_length", search.min_length}})
    if (translator.positions() > 0 && value > most &&
        std::ranges::count(arguments.search_given, key) > 0)
      log_warning(
          key,
          " is ",
          value,
          ", but a translation has at most ",
          most,
          " tokens by the model's learned positions");
}

void write_text(
    const RequestReader::Buffer& buffer,
    const std::vector<Translations>& results,
    bool numbered,
    std::ostream& out) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!numbered) {
      out << (results[i].empty() ? "" : one_line(results[i].front().text))
          << '\n';
      continue;
    }
    for (const Translation& translation : results[i])
      out << buffer.first_line + static_cast<int64_t>(i) << '\t'
          << translation.score << '\t' << one_line(translation.text) << '\n';
  }
}

void write_json(
    RequestReader::Buffer& buffer,
    const std::vector<Translations>& results,
    std::ostream& out) {
  for (size_t i = 0; i < results.size(); ++i) {
    Json list = Json::array();
    for (const Translation& translation : results[i])
      list.push_back(
          {{"text", translation.text},
           {"tokens", translation.tokens},
           {"score", translation.score},
           {"log_probability", translation.log_probability}});
    Json& object = buffer.objects[i];
    object["translations"] = std::move(list);
    out << object.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
}

}  // namespace

void translate(
    const TranslateArguments& arguments,
    std::istream& in,
    std::ostream& out) {
  set_threads(arguments.threads);
  std::vector<LoadedModel> models;
  for (const std::string& path : arguments.models)
    models.push_back(load_model(path));
  TranslatorOptions options;
  options.search = merge_search(arguments, models.front());
  options.batch_tokens = arguments.batch_tokens;
  options.buffer_lines = arguments.buffer_lines;
  const std::shared_ptr<const TextPipeline> source = models.front().text.source;
  const Translator translator(std::move(models), options);
  warn_of_positions(arguments, translator);

  RequestReader reader(arguments.input, in, arguments.json_input, *source);
  RequestReader::Buffer buffer;
  Meter meter;
  SymbolCount symbols;
  while (reader.read(arguments.buffer_lines, buffer)) {
    const auto results = translator.translate(buffer.requests, &symbols);
    if (arguments.format == OutputFormat::kJson)
      write_json(buffer, results, out);
    else
      write_text(buffer, results, options.search.n_best > 1, out);
    out.flush();
    meter.add(results);
  }
  if (reader.replaced_lines() > 0)
    log_warning(
        reader.replaced_lines(),
        " input lines held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
  if (symbols.is_mostly_unknown())
    log_warning("the input: ", symbols.warning());
  if (arguments.stats)
    log_info(meter.summary());
}

}  // namespace seqconv::engine
