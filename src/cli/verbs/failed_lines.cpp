#include "cli/verbs/failed_lines.h"

#include "base/error.h"
#include "base/log.h"

namespace seqconv::internal::verbs {
namespace {

constexpr size_t kMostNumbers = 10;

}  // namespace

void warn_of_replaced_lines(int64_t lines) {
  if (lines > 0)
    log_warning(
        lines, " input lines held bytes that are not UTF-8, or NUL: replaced by U+FFFD and blanks");
}

void report_blank_lines(int64_t lines) {
  if (lines > 0)
    log_info(lines, lines == 1 ? " blank line was skipped" : " blank lines were skipped");
}

void report_cut_lines(int64_t lines, int64_t most) {
  if (lines > 0)
    log_info(
        lines,
        " input lines were cut to their first ",
        most,
        " tokens (the model's max_source_tokens)");
}

void FailureSummary::operator+=(const FailureSummary& later) {
  if (count == 0)
    first = later.first;
  count += later.count;
  for (const int64_t number : later.numbers)
    if (numbers.size() < kMostNumbers)
      numbers.push_back(number);
}

void FailureSummary::finish(int64_t lines) const {
  if (count == 0)
    return;
  std::string list;
  for (const int64_t number : numbers)
    list += concat(list.empty() ? "" : ", ", number);
  if (count > static_cast<int64_t>(numbers.size()))
    list += ", ...";
  fail(
      count,
      " of ",
      lines,
      lines == 1 ? " line" : " lines",
      " failed (",
      list,
      "); the first: ",
      first);
}

void FailedLines::add(int64_t line, const std::string& message) {
  if (policy_ == OnFailure::kStop)
    throw Error(message);
  summary_ += {.count = 1, .first = message, .numbers = {line}};
}

}  // namespace seqconv::internal::verbs
