#include "runtime/output.h"

#include <algorithm>

#include "runtime/adaptive_output.h"
#include "runtime/output_rows.h"

namespace seqconv::internal::runtime {
namespace {

class SoftmaxOutput : public Output {
 public:
  SoftmaxOutput(const ModelOptions& options, const Weights& weights, const std::string& words)
      : logits_(options.dim, Projection(options, weights), weights.matrix(words)),
        vocabulary_(logits_.words()) {}

  void log_probabilities(
      int64_t rows, const float* hidden, float* out, Workspace& space) const override {
    logits_.run(rows, hidden, out, space);
    normalize(rows, vocabulary_, out);
  }

  void candidates(
      const float* hidden,
      const RowConstraint& constraint,
      int64_t count,
      std::vector<Candidate>& out,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    float* const logits = frame.take(vocabulary_);
    logits_.run(1, hidden, logits, space);
    select_row(
        softmax_scores(span_of(logits, vocabulary_), frame),
        {.rows = {&constraint, 1}},
        /*row=*/0,
        count,
        out);
  }

  void score(std::span<const int32_t> words, const float* hidden, float* out, Workspace& space)
      const override {
    Workspace::Frame frame(space);
    const auto rows = static_cast<int64_t>(words.size());
    const int64_t most = std::min(rows, rows_in_chunk(vocabulary_));
    float* const all = frame.take(most * vocabulary_);
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      log_probabilities(count, hidden + first * logits_.dim(), all, space);
      for (int64_t i = 0; i < count; ++i) {
        const int32_t word = words[static_cast<size_t>(first + i)];
        check_word(word, vocabulary_);
        out[first + i] = all[i * vocabulary_ + word];
      }
    }
  }

  const WordLogits& logits() const override { return logits_; }

 private:
  WordLogits logits_;
  int64_t vocabulary_;
};

}  // namespace

Projection::Projection(const ModelOptions& options, const Weights& weights) {
  if (options.output_width() != options.dim)
    linear_ = weights.matrix("output.projection");
}

const float* Projection::run(int64_t rows, const float* hidden, Workspace::Frame& frame) const {
  if (!linear_)
    return hidden;
  float* const projected = frame.take(rows * linear_->weight.outputs());
  linear_->run({.rows = rows, .x = hidden, .y = projected});
  return projected;
}

void WordLogits::run(int64_t rows, const float* hidden, float* out, Workspace& space) const {
  Workspace::Frame frame(space);
  words_.run({.rows = rows, .x = projection_.run(rows, hidden, frame), .y = out});
}

std::unique_ptr<Output> make_output(
    const ModelOptions& options,
    const Weights& weights,
    int64_t vocabulary,
    const std::string& words) {
  if (!options.adaptive.softmax_cutoffs.empty())
    return make_adaptive_output(options, weights, vocabulary);
  return std::make_unique<SoftmaxOutput>(options, weights, words.empty() ? "output.weight" : words);
}

}  // namespace seqconv::internal::runtime
