#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/verbs/verbs.h"
#include "metrics/corpus_metric.h"
#include "metrics/significance.h"

/// What `seqconv evaluate` does with any metric.
namespace seqconv::internal::cli {

/// What the metrics share.
struct EvaluationFlags {
  std::vector<std::string> references;  ///< files
  std::vector<std::string> hypotheses;  ///< a file a system; none: the stream
  std::string hypothesis_key;           ///< of JSON lines; "": lines of text
  std::string reference_key;
  OutputFormat format = OutputFormat::kText;
  int64_t decimals = 2;
  bool sentence = false;    ///< scores by sentence, not of the corpus
  bool confidence = false;  ///< intervals
  std::optional<PairedTestKind> paired;
  std::string baseline;  ///< a system's file; "": the first one
  int64_t samples = 0;   ///< of intervals and tests; 0: sacreBLEU's numbers
  int64_t seed = Resampling{}.seed;
  int64_t threads = 0;  ///< that count; 0: one for each core
};

struct EvaluationSystem {
  std::string name;  ///< its file
  std::vector<std::string> lines;
  /// In the file, of each of them; blank lines between JSON objects count.
  std::vector<int64_t> numbers{};
};

struct EvaluationText {
  std::vector<EvaluationSystem> systems;  ///< the baseline first
  /// [line][reference], not as many in each line.
  std::vector<std::vector<std::string>> references;
};

/// Reads hypotheses and references. UsageError for flags that make no sense
/// together; Error for files that cannot be read, have other numbers of lines,
/// and for JSON without what the keys name. Blank lines between JSON objects
/// are left out, and told.
EvaluationText read_evaluation_text(const EvaluationFlags& flags, std::istream& in);

/// Gives metrics that are alike, each time a new one.
using MakeMetric = std::function<std::unique_ptr<CorpusMetric>()>;

/// Scores all systems, each with a metric of its own, and writes what they
/// have, the same for any number of threads. One system of one measure: the
/// score, then its report; several: a table with tabs between. Or one JSON
/// object. By sentence: a line of scores or an object for each of them, and the
/// signature is told.
void evaluate(
    const EvaluationFlags& flags,
    const EvaluationText& text,
    const MakeMetric& make_metric,
    std::ostream& out);

}  // namespace seqconv::internal::cli
