#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seqconv::verbs {

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

/// Says how many sources were cut to the model's `most` tokens, if any.
void report_cut_lines(int64_t lines, int64_t most);

/// The lines of a run that could not be worked on.
class FailedLines {
 public:
  explicit FailedLines(OnFailure policy) : policy_(policy) {}

  /// Notes a line by its number; `message` says where it is and what is wrong
  /// with it. Throws it, as an Error, where the run is to stop.
  void add(int64_t line, const std::string& message);
  bool any() const { return count_ > 0; }
  int64_t count() const { return count_; }
  /// Error that sums them up, of all `lines` of the input; nothing when there
  /// are none.
  void finish(int64_t lines) const;

 private:
  OnFailure policy_;
  int64_t count_ = 0;
  std::string first_;             // message
  std::vector<int64_t> numbers_;  // of the first few
};

}  // namespace seqconv::verbs
