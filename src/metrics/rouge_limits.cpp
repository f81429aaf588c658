#include "metrics/rouge_limits.h"

#include <algorithm>

namespace seqconv::internal::metrics {
namespace {

constexpr std::string_view kPerlBlanks = " \t\n\r\f\v";

/// Takes lines of the text while take(line) is true; empty ones are none.
template <class Take>
void while_taken(std::string_view text, const Take& take) {
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (end > start && !take(text.substr(start, end - start)))
      return;
    start = end + 1;
  }
}

/// The end of the first `most` fields between white space, and in `fields` how
/// many there are, which is at most `most`. White space at the start has an
/// empty field before it.
size_t end_of_fields(std::string_view line, int64_t most, int64_t& fields) {
  const size_t last = line.find_last_not_of(kPerlBlanks);
  size_t end = 0;
  fields = 0;
  for (size_t at = 0; last != line.npos && at <= last && fields < most;) {
    end = std::min(line.find_first_of(kPerlBlanks, at), line.size());
    ++fields;
    at = std::min(line.find_first_not_of(kPerlBlanks, end), line.size());
  }
  return end;
}

void add_line(std::string_view line, std::string& out) {
  (out += line) += '\n';
}

}  // namespace

std::string first_words(std::string_view text, int64_t limit) {
  std::string out;
  while_taken(text, [&](std::string_view line) {
    int64_t words = 0;
    const size_t end = end_of_fields(line, limit, words);
    add_line(line.substr(0, words < limit ? line.size() : end), out);
    limit -= words;
    return limit > 0;
  });
  return out;
}

std::string first_bytes(std::string_view text, int64_t limit) {
  std::string out;
  while_taken(text, [&](std::string_view line) {
    add_line(line.substr(0, static_cast<size_t>(limit)), out);
    limit -= std::min(limit, static_cast<int64_t>(line.size()));
    return limit > 0;
  });
  return out;
}

std::string first_whole_sentences(std::string_view text, int64_t limit) {
  const auto most = static_cast<size_t>(limit);
  std::string out;
  while_taken(text, [&](std::string_view line) {
    add_line(line.substr(0, most), out);
    return line.size() < most;
  });
  return out;
}

}  // namespace seqconv::internal::metrics
