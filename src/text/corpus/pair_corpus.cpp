#include "text/corpus/pair_corpus.h"

#include <algorithm>

#include "base/error.h"
#include "text/corpus/corpus_reader.h"
#include "text/line_reader.h"
#include "text/symbol_count.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

std::filesystem::path side_path(const std::filesystem::path& stem, const char* side) {
  return stem.string() + "." + side + ".tokens";
}

/// Two files of which line i of one belongs to line i of the other.
class PairReader {
 public:
  PairReader(const CorpusSide& source, const CorpusSide& target, size_t file)
      : source_name_(source.files[file].file),
        target_name_(target.files[file].file),
        source_(source, source.files[file]),
        target_(target, target.files[file]) {}

  /// Moves both files on by a line; false when both have ended.
  bool next() {
    const bool more = source_.next();
    if (more != target_.next())
      fail_uneven();
    return more;
  }

  int64_t blank_lines() const { return source_.blank_lines(); }
  /// The ids of the present lines; errors name them.
  std::pair<std::vector<int32_t>, std::vector<int32_t>> ids(const FindPairPieces& find) const {
    if (!find)
      return {source_.ids(), target_.ids()};
    PairInSlots pair;
    if (source_.is_text() && target_.is_text())
      pair = find(source_.line(), target_.line());
    else
      (source_.is_text() ? pair.source : pair.target).line =
          without_stand_ins(clean_line(source_.is_text() ? source_.line() : target_.line()));
    return {source_.ids(pair.source), target_.ids(pair.target)};
  }

 private:
  [[noreturn]] void fail_uneven() {
    while (source_.next()) {}
    while (target_.next()) {}
    fail(
        "parallel files must have the same number of lines, but '",
        source_name_,
        "' has ",
        source_.count(),
        " and '",
        target_name_,
        "' has ",
        target_.count());
  }

  const std::string& source_name_;
  const std::string& target_name_;
  CorpusReader source_;
  CorpusReader target_;
};

/// Encodes pairs of lines and keeps those that a model can learn from.
class PairWriter {
 public:
  PairWriter(const PairLimits& limits, const std::filesystem::path& stem)
      : limits_(limits),
        target_path_(side_path(stem, "target")),
        source_(side_path(stem, "source")),
        target_(target_path_) {}

  void add(std::vector<int32_t> source, std::vector<int32_t> target) {
    const size_t whole_source = source.size();
    const size_t whole_target = target.size();
    ++report_.lines;
    switch (cut_pair(source, target, limits_)) {
      case PairFate::kEmpty:
        ++report_.empty;
        return;
      case PairFate::kTooLong:
        ++report_.too_long;
        return;
      case PairFate::kKept:
        break;
    }
    source_.append(source);
    target_.append(target);
    ++report_.pairs;
    report_.source_cut += source.size() < whole_source;
    report_.target_cut += target.size() < whole_target;
    report_.source_tokens += std::ssize(source) + 1;
    report_.target_tokens += std::ssize(target) + 1;
    report_.source_unknown += SymbolCount::of(source).unknown;
    report_.target_unknown += SymbolCount::of(target).unknown;
  }

  /// Whatever happens here, no new file stands beside an old one.
  void finish() {
    source_.prepare();
    target_.prepare();
    std::error_code absent;
    std::filesystem::remove(target_path_, absent);
    source_.finish();
    target_.finish();
  }

  CorpusReport& report() { return report_; }

 private:
  PairLimits limits_;
  std::filesystem::path target_path_;
  TokenStoreWriter source_;
  TokenStoreWriter target_;
  CorpusReport report_;
};

}  // namespace

std::string CorpusReport::summary() const {
  std::string cut, unknown;
  if (source_cut + target_cut > 0)
    cut = concat(", ", source_cut, " sources and ", target_cut, " targets cut");
  if (source_unknown + target_unknown > 0)
    unknown = concat(", ", source_unknown, " and ", target_unknown, " of them unknown");
  if (blank > 0)
    cut += concat(", ", blank, blank == 1 ? " blank line skipped" : " blank lines skipped");
  return concat(
      pairs,
      " pairs of ",
      lines,
      " (",
      empty,
      " with an empty side and ",
      too_long,
      " too long left out",
      cut,
      "), ",
      source_tokens,
      " source and ",
      target_tokens,
      " target tokens",
      unknown);
}

PairFate cut_pair(
    std::vector<int32_t>& source, std::vector<int32_t>& target, const PairLimits& limits) {
  cut_tokens(source, limits.source_cut);
  cut_tokens(target, limits.target_cut);
  if (source.empty() || target.empty())
    return PairFate::kEmpty;
  return std::ssize(source) + 1 > limits.source || std::ssize(target) + 1 > limits.target
      ? PairFate::kTooLong
      : PairFate::kKept;
}

int64_t read_pairs(
    const CorpusSide& source,
    const CorpusSide& target,
    const std::function<
        void(const std::vector<int32_t>& source, const std::vector<int32_t>& target)>& take,
    const FindPairPieces& find) {
  SEQCONV_CHECK(
      !source.files.empty() && source.files.size() == target.files.size(),
      "a corpus needs as many source files as target files, and one at least, but got ",
      source.files.size(),
      " and ",
      target.files.size());
  int64_t blank = 0;
  for (size_t i = 0; i < source.files.size(); ++i) {
    PairReader pairs(source, target, i);
    while (pairs.next()) {
      const auto [from, to] = pairs.ids(find);
      take(from, to);
    }
    blank += pairs.blank_lines();
  }
  return blank;
}

CorpusReport write_pair_corpus(
    const CorpusSide& source,
    const CorpusSide& target,
    const PairLimits& limits,
    const std::filesystem::path& stem,
    const FindPairPieces& find) {
  SEQCONV_CHECK(
      std::min(limits.source, limits.target) >= 2,
      "the longest length must be at least 2 (one symbol and </s>), but got ",
      std::min(limits.source, limits.target));
  PairWriter writer(limits, stem);
  const int64_t blank = read_pairs(
      source, target, [&](const auto& from, const auto& to) { writer.add(from, to); }, find);
  CorpusReport& report = writer.report();
  report.blank = blank;
  SEQCONV_CHECK(
      report.pairs > 0,
      "no pairs to learn from in ",
      list_files(source.files),
      " and ",
      list_files(target.files),
      ": of ",
      report.lines,
      " lines ",
      report.empty,
      " have an empty side and ",
      report.too_long,
      " have more than ",
      limits.source == limits.target
          ? concat(limits.source)
          : concat(limits.source, " source or ", limits.target, " target"),
      " tokens");
  writer.finish();
  return report;
}

PairCorpus open_pair_corpus(const std::filesystem::path& stem) {
  PairCorpus corpus;
  corpus.source = std::make_shared<TokenStore>(side_path(stem, "source"));
  corpus.target = std::make_shared<TokenStore>(side_path(stem, "target"));
  SEQCONV_CHECK(
      corpus.source->size() == corpus.target->size(),
      "the two sides of a corpus must have the same size, but '",
      side_path(stem, "source").string(),
      "' has ",
      corpus.source->size(),
      " sequences and '",
      side_path(stem, "target").string(),
      "' has ",
      corpus.target->size());
  return corpus;
}

}  // namespace seqconv::internal
