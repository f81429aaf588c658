#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <istream>
#include <mutex>
#include <ostream>

#include "seqconv/base/log.h"
#include "seqconv/base/options.h"
#include "seqconv/base/random.h"
#include "seqconv/decode/sampled_search.h"
#include "seqconv/pipeline/translator.h"
#include "seqconv/verbs/verbs.h"
#include "verbs/failed_lines.h"
#include "verbs/input_format.h"
#include "verbs/request_reader.h"
#include "verbs/result_writer.h"

namespace seqconv::verbs {
namespace {

// Counts for --stats.
class Meter {
 public:
  void add(const Translations& result) {
    ++sentences_;
    if (!result.empty())
      tokens_ += static_cast<int64_t>(result.front().token_scores.size());
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
    const TranslationSystem& model) {
  const Json given = write_options(arguments.search);
  Json merged = write_options(model.decoding);
  for (const std::string& key : arguments.search_given)
    merged[key] = given[key];
  SearchOptions search;
  read_options(merged, "", search);
  // The model's own list is not longer than a beam that was asked for.
  if (std::ranges::count(arguments.search_given, "n_best") == 0)
    search.n_best = std::min(search.n_best, search.beam);
  if (arguments.sampling)
    search = without_beam(search);
  search.validate("");
  return search;
}

// What was asked for beyond learned positions is not given in silence.
void warn_of_positions(const TranslateArguments& arguments, int64_t positions) {
  const SearchOptions& search = arguments.search;
  for (const auto& [key, value] :
       {std::pair{"max_length_b", search.max_length_b},
        {"min_length", search.min_length}})
    if (positions > 0 && value >= positions &&
        std::ranges::count(arguments.search_given, key) > 0)
      log_warning(
          key,
          " is ",
          value,
          ", but a translation has at most ",
          positions - 1,
          " tokens by the model's learned positions");
}

/// The input, a buffer at a time, and the output; what results say is told.
class BufferedLines : public TranslationLists {
 public:
  BufferedLines(
      const TranslateArguments& arguments,
      const Translator& translator,
      std::istream& in,
      std::ostream& out)
      : arguments_(arguments),
        translator_(translator),
        input_(input_format(arguments, translator.system().documents)),
        reader_(arguments.input, in, input_, *translator.system().text.source),
        writer_(
            arguments,
            output_format(arguments, input_),
            translator.options().search.n_best > 1),
        failed_(on_failure(arguments.strict)),
        out_(out) {}

  bool read(std::vector<TranslationRequest>& requests) override {
    RequestReader::Buffer buffer;
    if (!reader_.read(arguments_.buffer_lines, buffer))
      return false;
    requests.swap(buffer.requests);
    for (size_t i = 0; i < requests.size(); ++i)
      requests[i].seed = mix_words(
          static_cast<uint64_t>(arguments_.seed),
          static_cast<uint64_t>(buffer.first_line) + i);
    const std::lock_guard lock(mutex_);
    read_.push_back(std::move(buffer));
    return true;
  }

  void write(const std::vector<TranslationResult>& results) override {
    RequestReader::Buffer buffer = take_first();
    for (size_t i = 0; i < results.size(); ++i)
      write_line(
          buffer.first_line + static_cast<int64_t>(i),
          buffer.origins[i],
          results[i]);
    out_.flush();
  }

  /// After the last list.
  void finish() const {
    warn_of_replaced_lines(reader_.replaced_lines());
    report_cut_lines(cut_lines_, translator_.system().text.max_source_tokens);
    if (symbols_.is_mostly_unknown())
      log_warning("the input: ", symbols_.warning());
    if (arguments_.stats)
      log_info(
          meter_.summary(),
          " (",
          translator_.system().backend->name(),
          ")");
    failed_.finish(reader_.count());
  }

 private:
  RequestReader::Buffer take_first() {
    const std::lock_guard lock(mutex_);
    RequestReader::Buffer buffer = std::move(read_.front());
    read_.pop_front();
    return buffer;
  }

  void write_line(
      int64_t number,
      RequestOrigin& origin,
      const TranslationResult& result) {
    symbols_ += result.symbols;
    cut_lines_ += result.source_cut;
    // Cuts that the model wants are counted, not told one by one.
    for (size_t i = result.source_cut ? 1 : 0; i < result.notes.size(); ++i)
      log_warning(origin.where, ": ", result.notes[i]);
    if (origin.error.empty() && !result.error.empty())
      origin.error = concat(origin.where, ": ", result.error);
    if (origin.error.empty()) {
      meter_.add(result.translations);
    } else {
      out_.flush();  // this may be the end
      failed_.add(number, origin.error);
    }
    writer_.write(origin, result.translations, number, out_);
  }

  const TranslateArguments& arguments_;
  const Translator& translator_;
  InputFormat input_;
  RequestReader reader_;
  std::mutex mutex_;
  std::deque<RequestReader::Buffer> read_;  // and not written yet
  ResultWriter writer_;
  FailedLines failed_;
  Meter meter_;
  SymbolCount symbols_;
  int64_t cut_lines_ = 0;
  std::ostream& out_;
};

}  // namespace

void translate(
    const TranslateArguments& arguments,
    const BackendOpener& opener,
    std::istream& in,
    std::ostream& out) {
  TranslationSystem system = open_translation(
      {arguments.models.begin(), arguments.models.end()},
      opener,
      arguments.shortlist);
  TranslatorOptions options;
  options.search = merge_search(arguments, system);
  options.sampling = arguments.sampling;
  options.batch_tokens = arguments.batch_tokens;
  options.workers = arguments.workers;
  warn_of_positions(arguments, system.backend->limits().target);
  const Translator translator(std::move(system), options);
  BufferedLines lines(arguments, translator, in, out);
  translator.translate(lines);
  lines.finish();
}

}  // namespace seqconv::verbs
