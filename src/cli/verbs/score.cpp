#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>

#include "base/log.h"
#include "cli/verbs/failed_lines.h"
#include "cli/verbs/files_in_use.h"
#include "cli/verbs/verbs.h"
#include "pipeline/scorer.h"
#include "text/corpus/sentence_reader.h"

namespace seqconv::internal::verbs {
namespace {

using Sentences = std::vector<std::vector<int32_t>>;

struct Side {
  Sentences ids;                    ///< an empty one where a line failed
  std::vector<std::string> errors;  ///< one a line, "" where it did not
  std::vector<Slots> slots;         ///< of each line
  bool failed(size_t line) const { return !errors[line].empty(); }
};

/// Reads a side of the pairs, its lines or their ids.
class SideReader {
 public:
  /// `side` is its name for messages; `limit`: most tokens; `cut`: so many are
  /// left of a longer line; 0 for any number.
  SideReader(
      const std::string& file,
      const char* side,
      const TextPipeline& text,
      int64_t limit,
      int64_t cut = 0)
      : reader_(file, text.vocabulary().size()),
        side_(side),
        text_(text),
        limit_(limit),
        cut_(cut) {}

  /// `of_source`: the slots of the source's lines, which those of a target have; null for a source.
  Side read(const std::vector<Slots>* of_source = nullptr) {
    of_source_ = of_source;
    Side side;
    while (next()) {
      side.ids.push_back(std::move(ids_));
      side.errors.push_back(std::move(error_));
      side.slots.push_back(std::move(slots_));
    }
    report_cut_lines(cut_lines_, cut_);
    return side;
  }

 private:
  /// A line's own faults are noted, those of the file thrown.
  bool next() {
    const int64_t before = reader_.count();
    ids_ = {};
    error_ = {};
    slots_ = {};
    try {
      if (!reader_.next())
        return false;
      if (reader_.is_text())
        ids_ = located([&] { return reader_.where(); }, [&] { return encode(); });
    } catch (const Error& error) {
      if (reader_.count() == before)
        throw;
      error_ = error.what();
    }
    if (!reader_.is_text())
      ids_ = reader_.ids();
    cut_lines_ += cut_tokens(ids_, cut_);
    check_length();
    return true;
  }

  /// A target's protected pieces are those of its source.
  std::vector<int32_t> encode() {
    if (of_source_ == nullptr)
      slots_ = text_.slots_of(reader_.line());
    else if (const auto line = static_cast<size_t>(reader_.count()) - 1; line < of_source_->size())
      slots_ = (*of_source_)[line];
    return text_.encode(reader_.line(), slots_);
  }

  void check_length() {
    const auto length = std::ssize(ids_) + 1;
    if (limit_ == 0 || length <= limit_)
      return;
    ids_ = {};
    error_ = concat(
        reader_.where(),
        ": the ",
        side_,
        " has ",
        length,
        " tokens, </s> counted, more than the model's ",
        limit_,
        " learned positions");
  }

  SentenceReader reader_;
  const char* side_;
  const TextPipeline& text_;
  int64_t limit_;
  int64_t cut_;
  int64_t cut_lines_ = 0;
  const std::vector<Slots>* of_source_ = nullptr;
  std::vector<int32_t> ids_;
  Slots slots_;
  std::string error_;
};

/// Warns of a text in another vocabulary.
void warn_of_unknown(const std::string& path, const Sentences& sentences) {
  SymbolCount count;
  for (const std::vector<int32_t>& ids : sentences)
    count += SymbolCount::of(ids);
  if (count.is_mostly_unknown())
    log_warning(path, ": ", count.warning());
}

// Six decimals whatever the size of the number.
std::string fixed(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

}  // namespace

void score(const ScoreArguments& arguments, const BackendOpener& opener, std::ostream& out) {
  const FilesInUse files({arguments.model});
  const TranslationSystem model = open_translation({arguments.model}, opener);
  const PositionLimits limits = model.backend->limits();
  const TranslationText& text = model.text;
  const Side sources =
      SideReader(arguments.source, "source", *text.source, limits.source, text.max_source_tokens)
          .read();
  const Side targets =
      SideReader(arguments.target, "target", *text.target, limits.target).read(&sources.slots);
  const size_t lines = sources.ids.size();
  if (lines != targets.ids.size())
    fail(
        "source and target must have as many lines, but ",
        arguments.source,
        " has ",
        lines,
        " and ",
        arguments.target,
        " has ",
        targets.ids.size());
  FailedLines failed(on_failure(arguments.strict));
  for (size_t i = 0; i < lines; ++i)
    if (sources.failed(i) || targets.failed(i))
      failed.add(
          static_cast<int64_t>(i) + 1, sources.failed(i) ? sources.errors[i] : targets.errors[i]);
  warn_of_unknown(arguments.source, sources.ids);
  warn_of_unknown(arguments.target, targets.ids);
  // A line without a number would shift the others for some readers.
  double total = 0;
  const std::vector<double> scores = score_pairs(
      *model.backend, sources.ids, targets.ids, arguments.batch_tokens, arguments.workers);
  files.check_not_written();
  for (size_t i = 0; i < lines; ++i) {
    const bool read = !sources.failed(i) && !targets.failed(i);
    const bool scored = read && std::isfinite(scores[i]);
    if (read && !scored)
      failed.add(
          static_cast<int64_t>(i) + 1,
          concat(
              arguments.target,
              ":",
              i + 1,
              ": the model gives the pair no finite probability: its weights are too large, or "
              "damaged"));
    const double log_probability = scored ? scores[i] : std::numeric_limits<double>::quiet_NaN();
    out << fixed(log_probability) << '\n';
    total += log_probability;
  }
  out << "total\t" << fixed(total) << '\n';
  out.flush();
  failed.finish(static_cast<int64_t>(lines));
}

}  // namespace seqconv::internal::verbs
