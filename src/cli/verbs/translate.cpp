#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <istream>
#include <mutex>
#include <optional>
#include <ostream>

#include "base/log.h"
#include "base/options.h"
#include "base/random.h"
#include "cli/verbs/failed_lines.h"
#include "cli/verbs/files_in_use.h"
#include "cli/verbs/input_format.h"
#include "cli/verbs/part_input.h"
#include "cli/verbs/part_writer.h"
#include "cli/verbs/parts_folder.h"
#include "cli/verbs/request_reader.h"
#include "cli/verbs/result_writer.h"
#include "cli/verbs/translation_job.h"
#include "cli/verbs/verbs.h"
#include "pipeline/translator.h"
#include "search/sampled_search.h"
#include "text/corpus/fairseq_data.h"
#include "text/packed_text.h"

namespace seqconv::internal {

SearchOptions TranslateArguments::given_search() const {
  const Json all = write_options(search);
  Json table = Json::object();
  for (const std::string& key : search_given)
    table[key] = all[key];
  SearchOptions given;
  read_options(table, "", given);
  return given;
}

namespace verbs {
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
        "translated %lld sentences into %lld tokens in %.1f s: %.1f sentences/s, %.1f tokens/s",
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

/// The command line's search over that which the (first) model came with.
DecodingOptions merge_search(const TranslateArguments& arguments, const TranslationSystem& model) {
  DecodingOptions search = resolve_search(arguments.given_search(), model.decoding);
  if (arguments.sampling)
    search = without_beam(search);
  search.validate(arguments.names);
  return search;
}

// What was asked for beyond learned positions is not given in silence.
void warn_of_positions(const TranslateArguments& arguments, int64_t positions) {
  const DecodingOptions& search = arguments.search;
  for (const auto& [key, value] :
       {std::pair{"max_length_b", search.max_length_b}, {"min_length", search.min_length}})
    if (positions > 0 && value >= positions && std::ranges::count(arguments.search_given, key) > 0)
      log_warning(
          arguments.names(key),
          " is ",
          value,
          ", but a translation has at most ",
          positions - 1,
          " tokens by the model's learned positions");
}

/// What is told of all lines when they are done; Error where some failed.
void report(const PartProgress& total, const TranslationSystem& system, const OptionNames& names) {
  warn_of_replaced_lines(total.replaced);
  report_blank_lines(total.blank);
  report_cut_lines(total.cut, system.text.max_source_tokens);
  if (const std::string warning = total.limits.warning(names); !warning.empty())
    log_warning(warning);
  total.failed.finish(total.lines);
}

/// Where a part of a file is read from and written to.
struct PartFiles {
  RangeStream in;
  PartWriter out;
};

/// A translation of all lines; what it refers to outlives it.
struct TranslationRun {
  const TranslateArguments& arguments;
  const Translator& translator;
  const FilesInUse& files;
  InputFormat input;

  const TranslationSystem& system() const { return translator.system(); }
  RequestOptions defaults() const {
    return {
        translator.options().search,
        arguments.sampling,
        arguments.alignments,
        system().terminology != nullptr};
  }
};

/// The input, a buffer at a time, and the output; what results say is told.
class BufferedLines : public TranslationLists {
 public:
  /// `part`: where a part is translated, what `reader` and `out` belong to; the
  /// lines go on behind its progress.
  BufferedLines(
      const TranslationRun& run, RequestReader reader, std::ostream& out, PartFiles* part = nullptr)
      : arguments_(run.arguments),
        translator_(run.translator),
        files_(run.files),
        reader_(std::move(reader)),
        format_(output_format(run.arguments, run.input)),
        writer_(run.arguments, format_, several()),
        progress_(part == nullptr ? PartProgress{} : part->out.progress()),
        replaced_before_(progress_.replaced),
        blank_before_(progress_.blank),
        failed_(on_failure(run.arguments.strict), progress_.failed),
        part_(part),
        out_(out) {}

  bool read(std::vector<TranslationInput>& requests) override {
    Read next;
    RequestReader::Buffer& buffer = next.buffer;
    if (!reader_.read(arguments_.buffer_lines, buffer))
      return false;
    requests.swap(buffer.requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      RequestOrigin& origin = buffer.origins[i];
      if (requests[i].sampling && !requests[i].sampling->seed)
        requests[i].sampling->seed =
            mix_words(static_cast<uint64_t>(arguments_.seed), static_cast<uint64_t>(origin.number));
      settle_results(requests[i], origin);
    }
    note_place(next);
    const std::lock_guard lock(mutex_);
    read_.push_back(std::move(next));
    return true;
  }

  void write(const std::vector<TranslationOutcome>& results) override {
    files_.check_not_written();
    Read first = take_first();
    RequestReader::Buffer& buffer = first.buffer;
    for (size_t i = 0; i < results.size(); ++i)
      write_line(buffer.origins[i], results[i]);
    out_.flush();
    reach(first);
  }

  /// After the last list, behind which blank lines may stand.
  void finish() {
    Read end;
    note_place(end);
    reach(end);
    if (symbols_.is_mostly_unknown())
      log_warning("the input: ", symbols_.warning());
    if (arguments_.stats)
      log_info(
          meter_.summary(),
          " (",
          translator_.system().backend->name(),
          ")",
          arguments_.logits_megabytes == 0
              ? std::string()
              : concat(", logits of ", arguments_.logits_megabytes, " MB at a time"));
  }
  const PartProgress& progress() const { return progress_; }

 private:
  /// True if all lines have several results, if their requests do not say.
  bool several() const { return translator_.options().search.n_best > 1; }

  /// Lines of text are one a request where none has several.
  void settle_results(TranslationInput& request, RequestOrigin& origin) const {
    const int64_t n_best = resolve_search(request.search, translator_.options().search).n_best;
    origin.several = n_best > 1;
    if (!origin.several || several() || format_ == OutputFormat::kJson)
      return;
    origin.error = concat(
        origin.where,
        ": n_best above 1 needs ",
        "--format json, or --n-best above 1 for all lines, but got ",
        n_best);
    request = {};
  }

  /// A buffer, and how far the input is read behind it.
  struct Read {
    RequestReader::Buffer buffer;
    int64_t offset = 0;
    int64_t lines = 0;
    int64_t replaced = 0;
    int64_t blank = 0;
  };

  void note_place(Read& read) const {
    read.offset = part_ == nullptr ? 0 : part_->in.position();
    read.lines = reader_.count();
    read.replaced = replaced_before_ + reader_.replaced_lines();
    read.blank = blank_before_ + reader_.blank_lines();
  }

  void reach(const Read& read) {
    progress_.offset = read.offset;
    progress_.lines = read.lines;
    progress_.replaced = read.replaced;
    progress_.blank = read.blank;
    progress_.failed = failed_.summary();
    if (part_ != nullptr)
      part_->out.reached(progress_);
  }

  Read take_first() {
    const std::lock_guard lock(mutex_);
    Read first = std::move(read_.front());
    read_.pop_front();
    return first;
  }

  void write_line(RequestOrigin& origin, const TranslationOutcome& result) {
    symbols_ += result.symbols;
    progress_.limits.add(result);
    progress_.cut += result.source_cut;
    // Cuts that the model wants are counted, not told one by one.
    for (size_t i = result.source_cut ? 1 : 0; i < result.notes.size(); ++i)
      log_warning(origin.where, ": ", result.notes[i]);
    if (origin.error.empty() && !result.error.empty())
      origin.error = concat(origin.where, ": ", result.error);
    if (origin.error.empty()) {
      meter_.add(result.translations);
    } else {
      out_.flush();  // this may be the end
      failed_.add(origin.number, origin.error);
    }
    writer_.write(origin, result, origin.number, out_);
  }

  const TranslateArguments& arguments_;
  const Translator& translator_;
  const FilesInUse& files_;
  RequestReader reader_;
  std::mutex mutex_;
  std::deque<Read> read_;  // and not written yet
  OutputFormat format_;
  ResultWriter writer_;
  PartProgress progress_;  // of what is written
  int64_t replaced_before_;
  int64_t blank_before_;
  FailedLines failed_;
  Meter meter_;
  SymbolCount symbols_;
  PartFiles* part_;
  std::ostream& out_;
};

void translate_stream(const TranslationRun& run, std::istream& in, std::ostream& out) {
  BufferedLines lines(
      run,
      RequestReader(run.arguments.input, in, run.input, run.defaults(), *run.system().text.source),
      out);
  run.translator.translate(lines);
  lines.finish();
  report(lines.progress(), run.system(), run.arguments.names);
}

/// A part cut anywhere in a file is that of lines only where the file stays.
void check_part_input(const std::string& input) {
  if (input.empty())
    fail_usage("--output needs --input FILE: what standard input holds cannot be read again when "
               "the work goes on");
  SEQCONV_CHECK(
      std::filesystem::is_regular_file(input),
      "--output needs a file as --input, but '",
      input,
      std::filesystem::exists(input) ? "' is none" : "' is not there");
  if (is_fairseq_data(input))
    fail_usage(
        "--output needs a file of text as --input, but '",
        input,
        "' is binarised data by its name; standard output takes what is made of it");
  // Parts are found by their places, and work goes on at one.
  if (const auto packing = PackedText(input).packing(); !packing.empty())
    fail_usage(
        "--output needs a file of plain text as --input, but '",
        input,
        "' is packed by ",
        packing,
        ": unpack it first, or leave out --output: standard output takes what is made of it");
}

/// Where the part's lines are that are not translated yet.
PartFiles open_part(const PartsFolder& folder, const std::string& input, const FileRange& range) {
  if (const auto found = folder.load()) {
    log_info("going on behind line ", found->lines, " of '", input, "'");
    return {{input, {found->offset, range.end}}, {folder, *found}};
  }
  const PartProgress start{.offset = range.begin, .lines = lines_before(input, range.begin)};
  return {{input, range}, {folder, start}};
}

void translate_part(const TranslationRun& run, const PartsFolder& folder, const Json& job) {
  const std::string& input = run.arguments.input;
  const FileRange range = lines_of_part(input, run.arguments.part);
  PartFiles part = open_part(folder, input, range);
  BufferedLines lines(
      run,
      RequestReader(
          part.in,
          input,
          part.out.progress().lines,
          run.input,
          run.defaults(),
          *run.system().text.source),
      part.out.stream(),
      &part);
  run.translator.translate(lines);
  lines.finish();
  SEQCONV_CHECK(
      part.in.position() == range.end && fingerprint(input) == job["input"],
      "'",
      input,
      "' was changed while it was translated: delete the folder '",
      folder.file().parent_path().string(),
      "' to start over");
  part.out.finish();
}

/// The last part that is done joins them; who does tells what all have found.
void join_parts(
    const TranslateArguments& arguments,
    const TranslationSystem& system,
    const PartsFolder& folder) {
  const JoinedParts joined = folder.join();
  if (joined.missing > 0)
    log_info(
        "part ",
        arguments.part.index,
        " of ",
        arguments.part.count,
        " is done, ",
        joined.missing,
        joined.missing == 1 ? " is" : " are",
        " missing");
  if (joined.here)
    report(joined.total, system, arguments.names);
}

}  // namespace

void translate(
    const TranslateArguments& arguments,
    const BackendOpener& opener,
    std::istream& in,
    std::ostream& out) {
  std::vector<RootedPath> models;
  for (const std::string& model : arguments.models)
    models.emplace_back(model, arguments.links);
  std::optional<PartsFolder> folder;
  if (!arguments.output.empty()) {
    check_part_input(arguments.input);
    folder.emplace(arguments.output, arguments.part);
  }
  const FilesBeside beside{arguments.shortlist, arguments.terminology};
  const FilesInUse files(models, beside);
  if (folder)
    for (const ModelFiles& model : files.models())
      check_output_file(arguments.output, model);
  TranslationSystem system = open_translation(models, opener, beside);
  TranslatorOptions options;
  options.search = merge_search(arguments, system);
  options.ban_unknown = arguments.ban_unknown;
  options.names = arguments.names;
  options.batch_tokens = arguments.batch_tokens;
  options.workers = arguments.workers;
  options.max_source_tokens = arguments.max_source_tokens;
  warn_of_positions(arguments, system.backend->limits().target);
  const Translator translator(std::move(system), options);
  const TranslationRun run{
      arguments, translator, files, input_format(arguments, translator.system().documents)};
  if (!folder)
    return translate_stream(run, in, out);
  const Json job = describe_job(arguments, translator, files.models(), run.input);
  files.check_same();  // so that what is described is what was opened
  folder->enter(job);
  if (const auto lock = folder->lock(); !folder->is_done())
    translate_part(run, *folder, job);
  join_parts(arguments, translator.system(), *folder);
}

}  // namespace verbs
}  // namespace seqconv::internal
