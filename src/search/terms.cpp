#include "search/terms.h"

#include <algorithm>

#include "base/error.h"

namespace seqconv::internal::decode {
namespace {

bool starts_with(std::span<const int32_t> tokens, std::span<const int32_t> beginning) {
  return tokens.size() >= beginning.size() &&
      std::ranges::equal(tokens.first(beginning.size()), beginning);
}

}  // namespace

Terms::Terms(std::vector<std::vector<int32_t>> terms, const WordEdges* edges)
    : terms_(std::move(terms)), edges_(edges) {
  for (const std::vector<int32_t>& term : terms_) {
    SEQCONV_CHECK(!term.empty(), "a term must have tokens, but has none");
    tokens_ += std::ssize(term);
  }
  SEQCONV_CHECK(
      terms_.size() <= kMostTerms && tokens_ <= kMostTermTokens,
      "a sentence must have at most ",
      kMostTerms,
      " terms of ",
      kMostTermTokens,
      " tokens together, but has ",
      terms_.size(),
      " of ",
      tokens_);
}

int64_t Terms::tokens_in(const TermProgress& progress) const {
  int64_t tokens = progress.tokens;
  for (size_t term = 0; term < terms_.size(); ++term)
    tokens += is_met(progress, term) ? std::ssize(terms_[term]) : 0;
  return tokens;
}

bool Terms::are_met(const TermProgress& progress) const {
  for (size_t term = 0; term < terms_.size(); ++term)
    if (!is_met(progress, term))
      return false;
  return true;
}

/// Tells whether a run of tokens is, or begins, a term that is not met, and notes that.
bool Terms::meets_some(TermProgress& progress, std::span<const int32_t> run) const {
  size_t whole = terms_.size();
  for (size_t term = 0; term < terms_.size(); ++term) {
    if (is_met(progress, term) || !starts_with(terms_[term], run))
      continue;
    if (terms_[term].size() > run.size()) {
      progress.begun = static_cast<int32_t>(term);
      progress.tokens = static_cast<int32_t>(run.size());
      return true;
    }
    whole = std::min(whole, term);
  }
  if (whole == terms_.size())
    return false;
  progress.met |= uint64_t{1} << whole;
  progress.ended = static_cast<int32_t>(whole);
  return true;
}

/// Takes the first tokens off a run that leads nowhere: the longest term that they are, which is
/// met then, or one token. Returns how many.
size_t Terms::leave(TermProgress& progress, std::span<const int32_t> run) const {
  size_t longest = 0, found = 0;
  for (size_t term = 0; term < terms_.size(); ++term)
    if (const size_t size = terms_[term].size(); !is_met(progress, term) && size > longest &&
        starts_with(run, terms_[term]) && part(run[size - 1], run[size])) {
      longest = terms_[term].size();
      found = term;
    }
  if (longest > 0)
    progress.met |= uint64_t{1} << found;
  return std::max<size_t>(longest, 1);
}

TermProgress Terms::follow(TermProgress progress, int32_t token) const {
  static thread_local std::vector<int32_t> run;  // no memory in a step
  run.clear();
  if (progress.begun >= 0) {
    const std::vector<int32_t>& begun = terms_[static_cast<size_t>(progress.begun)];
    run.assign(begun.begin(), begun.begin() + progress.tokens);
  }
  run.push_back(token);
  if (progress.ended >= 0 && !part(progress.last, token))
    progress.met &= ~(uint64_t{1} << progress.ended);
  int32_t before = progress.begun < 0 ? progress.last : -1;  // the run
  progress.begun = progress.ended = -1;
  progress.tokens = 0;
  for (std::span<const int32_t> rest(run); !rest.empty();) {
    const bool begins_word = part(before, rest.front());
    if (begins_word && meets_some(progress, rest))
      break;
    const size_t left = begins_word ? leave(progress, rest) : 1;
    before = rest[left - 1];
    rest = rest.subspan(left);
  }
  progress.last = token;
  return progress;
}

void Terms::ask(const TermProgress& progress, std::vector<int32_t>& tokens) const {
  const auto done = static_cast<size_t>(progress.tokens);
  std::span<const int32_t> run;
  if (progress.begun >= 0)
    run = std::span(terms_[static_cast<size_t>(progress.begun)]).first(done);
  for (size_t term = 0; term < terms_.size(); ++term) {
    if (is_met(progress, term) || terms_[term].size() <= done || !starts_with(terms_[term], run))
      continue;
    const int32_t next = terms_[term][done];
    if (done == 0 && !part(progress.last, next))
      continue;
    if (std::ranges::find(tokens, next) == tokens.end())
      tokens.push_back(next);
  }
}

}  // namespace seqconv::internal::decode
