#include "search/search_inputs.h"

#include <algorithm>

#include "base/error.h"
#include "base/special_ids.h"

namespace seqconv::internal::decode {
namespace {

/// Error for tokens of a prefix or a term that cannot be written.
void check_tokens(
    const char* kind,
    size_t sentence,
    const std::vector<int32_t>& tokens,
    int64_t vocabulary_size) {
  for (size_t i = 0; i < tokens.size(); ++i)
    SEQCONV_CHECK(
        is_producible(tokens[i]) && tokens[i] < vocabulary_size,
        kind,
        " tokens must be between 2 and ",
        vocabulary_size - 1,
        " (no <s>, no <pad>), but got ",
        tokens[i],
        " at position ",
        i,
        " of sentence ",
        sentence);
}

}  // namespace

void check_inputs(
    const StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    std::span<const int32_t> excluded) {
  SEQCONV_CHECK(
      decoder.sentences() == static_cast<int64_t>(inputs.size()),
      "search needs an input for each of the decoder's ",
      decoder.sentences(),
      " sentences, but got ",
      inputs.size());
  SEQCONV_CHECK(
      decoder.vocabulary_size() > kEndId,
      "the vocabulary must hold </s> (at least 3 ids), but it has ",
      decoder.vocabulary_size());
  SEQCONV_CHECK(
      decoder.max_steps() >= 1,
      "the decoder must be able to make a step, but its limit is ",
      decoder.max_steps());
  for (size_t i = 0; i < inputs.size(); ++i) {
    SEQCONV_CHECK(
        inputs[i].source_length >= 0,
        "the source length must be at least 0, but got ",
        inputs[i].source_length,
        " for sentence ",
        i);
    check_tokens("prefix", i, inputs[i].prefix, decoder.vocabulary_size());
    for (const std::vector<int32_t>& term : inputs[i].terms)
      check_tokens("term", i, term, decoder.vocabulary_size());
  }
  SEQCONV_CHECK(
      std::is_sorted(excluded.begin(), excluded.end()), "excluded tokens must be ascending");
}

}  // namespace seqconv::internal::decode
