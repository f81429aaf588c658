#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "search/candidates.h"
#include "search/step_decoder.h"

/// Interfaces of what runs a model's arithmetic, as all that translates, scores
/// and generates sees it: ids in, decoders and log-probabilities out.
/// Torch-free.
namespace seqconv::internal {

/// Most ids of a sentence, </s> counted, by learned positions; 0: no limit.
struct PositionLimits {
  int64_t source = 0;
  int64_t target = 0;

  /// Those within both.
  PositionLimits within(const PositionLimits& other) const {
    const auto least = [](int64_t a, int64_t b) {
      return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
    };
    return {least(source, other.source), least(target, other.target)};
  }
};

/// Holds how much a translation's tokens, </s> the last, looked at each source token, </s> the
/// last: [T, S], the sum of a row is 1.
struct SourceShares {
  int64_t source_tokens = 0;  ///< S
  std::vector<float> values;

  int64_t target_tokens() const { return std::ssize(values) / source_tokens; }
};

/// Gives each token the look of the step that reads it; the last keeps its own.
void take_next_steps(std::vector<SourceShares>& shares);

/// The mean of several models' shares of the same sentences.
std::vector<SourceShares> mean_shares(std::vector<std::vector<SourceShares>> of_models);

/// A translation model, or several that vote, ready to run. Its functions may
/// be called from several threads at a time. Sentences are ids of the model's
/// vocabularies without </s>; Error for others, and beyond limits().
class TranslationBackend {
 public:
  virtual ~TranslationBackend() = default;

  /// Reads the sources, at least one, and gives the decoder of their
  /// translations. The decoder may outlive the backend.
  virtual std::unique_ptr<StepDecoder> start(
      const std::vector<std::vector<int32_t>>& sources) const = 0;

  /// Tells whether it has start_within.
  virtual bool limits_words() const { return false; }
  /// The same, but that the translation of sources[i] holds none but words[i]:
  /// ascending, each once, </s> among them. Probabilities are those of a model
  /// that knows no other words, and a sentence's depend on its own list alone.
  /// Error for ids outside the vocabulary, and where there is no such thing.
  virtual std::unique_ptr<StepDecoder> start_within(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& words) const {
    static_cast<void>(sources);
    static_cast<void>(words);
    fail("what runs the model cannot leave words out: it takes no shortlist");
  }

  /// Natural log-probability of each target given its source, </s> included;
  /// not a finite number where the model's own are not. All in one batch.
  virtual std::vector<double> score(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& targets) const = 0;

  /// Tells how the tokens of each translation of a source look at it, by the models'
  /// AlignmentOptions, in the mean of those that vote. All in one batch, which reads the
  /// source once.
  virtual std::vector<SourceShares> source_shares(
      const std::vector<int32_t>& source,
      const std::vector<std::vector<int32_t>>& targets) const = 0;

  virtual PositionLimits limits() const = 0;

  /// Says what runs it, for reports: "runtime, float32".
  virtual std::string name() const = 0;
  /// Bytes of weights in memory beside mapped files; 0: not known.
  virtual int64_t weight_bytes() const { return 0; }
};

/// One text on which a language model goes on, token by token. For models
/// without attention its size does not depend on how much was read.
class TextReader {
 public:
  virtual ~TextReader() = default;

  /// Reads ids, at least one, and returns what comes next, valid until the next
  /// call. Error for ids outside the vocabulary, and when learned positions do
  /// not reach.
  virtual NextTokens& read(std::span<const int32_t> ids) = 0;
};

/// A language model, ready to run. Its functions may be called from several
/// threads at a time.
class LanguageBackend {
 public:
  virtual ~LanguageBackend() = default;

  /// A reader that has read nothing. It may outlive the backend.
  virtual std::unique_ptr<TextReader> start() const = 0;

  /// Natural log-probability of each id of a piece but its first, given those
  /// before it. All pieces, of two ids or more, in one batch.
  virtual std::vector<std::vector<float>> score(
      const std::vector<std::span<const int32_t>>& pieces) const = 0;

  /// Most ids of a text: of learned positions, or a very large number.
  virtual int64_t max_tokens() const = 0;

  /// Says what runs it, for reports.
  virtual std::string name() const = 0;
  /// As of TranslationBackend.
  virtual int64_t weight_bytes() const { return 0; }
};

}  // namespace seqconv::internal
