#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "search/search.h"

namespace seqconv::internal::testing {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// A source sentence that no limit but its length touches.
inline SearchInput sentence(int64_t source_length) {
  SearchInput input;
  input.source_length = source_length;
  return input;
}

/// A language whose next-token log-probabilities are drawn from a hash of the
/// sentence and its last `context` tokens: a random n-gram model.
struct RandomTable {
  uint64_t seed = 1;
  int64_t vocabulary = 8;
  int64_t context = 2;
  /// > 0: log-probabilities are whole multiples of this, so that ties abound.
  float grid = 0;
  /// Share of tokens that have log-probability minus infinity or NaN.
  double impossible = 0;

  /// [V] log-probabilities after `history`, which starts with </s>.
  std::vector<float> log_probs(int64_t sentence, std::span<const int32_t> history) const;
};

/// The table as a StepDecoder. Every call checks that parents exist, that the
/// first tokens are </s> and that later ones were among the candidates given;
/// violations are test failures. Selection is a plain sort.
class TableDecoder : public StepDecoder {
 public:
  TableDecoder(RandomTable table, std::vector<int64_t> sentences, int64_t max_steps = 1000)
      : table_(table), ids_(std::move(sentences)), max_steps_(max_steps) {}

  int64_t sentences() const override { return static_cast<int64_t>(ids_.size()); }
  int64_t vocabulary_size() const override { return table_.vocabulary; }
  int64_t max_steps() const override { return max_steps_; }

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override;

  int64_t steps() const { return steps_; }
  /// Rows of each call, in order.
  const std::vector<size_t>& rows_by_step() const { return rows_by_step_; }

 protected:
  struct Row {
    int64_t sentence = 0;
    std::vector<int32_t> history;
  };
  virtual std::vector<float> scores(const Row& row) const {
    return table_.log_probs(row.sentence, row.history);
  }

 private:
  void check_continues(size_t parent, int32_t token) const;

  RandomTable table_;
  std::vector<int64_t> ids_;
  int64_t max_steps_;
  int64_t steps_ = 0;
  std::vector<Row> rows_;
  std::vector<std::vector<Candidate>> candidates_;
  std::vector<std::vector<Candidate>> offered_;  // those, or all that may come
  std::vector<size_t> rows_by_step_;
};

}  // namespace seqconv::internal::testing
