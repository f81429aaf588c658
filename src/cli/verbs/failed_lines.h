#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace seqconv::internal::verbs {

/// What becomes of a line that cannot be worked on.
enum class OnFailure {
  kGoOn,  ///< the others are, and the run fails at its end
  kStop,  ///< the run fails at once
};

/// As a verb's --strict says.
inline OnFailure on_failure(bool strict) {
  return strict ? OnFailure::kStop : OnFailure::kGoOn;
}

/// Warns of input lines in which invalid UTF-8 or NUL was replaced, if any.
void warn_of_replaced_lines(int64_t lines);

/// Says how many blank lines between JSON objects were passed over, if any.
void report_blank_lines(int64_t lines);

/// Says how many sources were cut to the model's `most` tokens, if any.
void report_cut_lines(int64_t lines, int64_t most);

/// What there is to say of lines that failed.
struct FailureSummary {
  int64_t count = 0;
  std::string first;             ///< message
  std::vector<int64_t> numbers;  ///< of the first few

  template <class Visitor>
  void visit(Visitor& v) {
    v("count", count, "Lines that failed");
    v("first", first, "What the first one's message is");
    v("numbers", numbers, "The first few lines");
  }
  /// Adds what is to be said of later lines.
  void operator+=(const FailureSummary& later);
  /// Error that says it, of all `lines` of the input; nothing when there are
  /// none.
  void finish(int64_t lines) const;
};

/// The lines of a run that could not be worked on.
class FailedLines {
 public:
  explicit FailedLines(OnFailure policy, FailureSummary before = {})
      : policy_(policy), summary_(std::move(before)) {}

  /// Notes a line by its number; `message` says where it is and what is wrong
  /// with it. Throws it, as an Error, where the run is to stop.
  void add(int64_t line, const std::string& message);
  bool any() const { return summary_.count > 0; }
  int64_t count() const { return summary_.count; }
  const FailureSummary& summary() const { return summary_; }
  /// FailureSummary::finish.
  void finish(int64_t lines) const { summary_.finish(lines); }

 private:
  OnFailure policy_;
  FailureSummary summary_;
};

}  // namespace seqconv::internal::verbs
