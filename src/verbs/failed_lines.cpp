#include "verbs/failed_lines.h"

#include "seqconv/base/error.h"
#include "seqconv/base/log.h"

namespace seqconv::verbs {
namespace {

constexpr size_t kMostNumbers = 10;

}  // namespace

void warn_of_replaced_lines(int64_t lines) {
  if (lines > 0)
    log_warning(
        lines,
        " input lines held bytes that are not UTF-8, or NUL: replaced by "
        "U+FFFD and blanks");
}

void report_cut_lines(int64_t lines, int64_t most) {
  if (lines > 0)
    log_info(
        lines,
        " input lines were cut to their first ",
        most,
        " tokens (the model's max_source_tokens)");
}

void FailedLines::add(int64_t line, const std::string& message) {
  if (policy_ == OnFailure::kStop)
    throw Error(message);
  if (++count_ == 1)
    first_ = message;
  if (numbers_.size() < kMostNumbers)
    numbers_.push_back(line);
}

void FailedLines::finish(int64_t lines) const {
  if (!any())
    return;
  std::string numbers;
  for (const int64_t number : numbers_)
    numbers += concat(numbers.empty() ? "" : ", ", number);
  if (count_ > static_cast<int64_t>(numbers_.size()))
    numbers += ", ...";
  fail(
      count_,
      " of ",
      lines,
      lines == 1 ? " line" : " lines",
      " failed (",
      numbers,
      "); the first: ",
      first_);
}

}  // namespace seqconv::verbs
