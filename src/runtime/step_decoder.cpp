#include "step_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "output_rows.h"

namespace seqconv::runtime {
namespace {

/// One model's share of a decoder.
struct Voter {
  std::shared_ptr<const TranslationModel> model;
  Sources sources;
  PastSteps past;
  std::optional<ListedOutput> listed;  ///< where not all words may come

  const Output& output() const { return model->decoder().output(); }
};

class RuntimeDecoder : public StepDecoder {
 public:
  RuntimeDecoder(
      std::vector<std::shared_ptr<const TranslationModel>> models,
      const std::vector<std::vector<int32_t>>& sources,
      std::unique_ptr<const WordLists> words)
      : words_(std::move(words)) {
    for (auto& model : models) {
      Sources read = model->read(sources, space_);
      PastSteps past = model->decoder().start();
      std::optional<ListedOutput> listed;
      if (words_ != nullptr)
        listed.emplace(model->decoder().output(), *words_);
      voters_.push_back(
          {std::move(model),
           std::move(read),
           std::move(past),
           std::move(listed)});
    }
    for (size_t i = 0; i < sources.size(); ++i)
      sentence_of_row_.push_back(static_cast<int32_t>(i));
  }

  int64_t sentences() const override {
    return voters_[0].sources.sequences.count();
  }
  int64_t vocabulary_size() const override {
    return voters_[0].model->decoder().vocabulary();
  }
  int64_t max_steps() const override {
    int64_t steps = voters_[0].model->decoder().max_tokens();
    for (const Voter& voter : voters_)
      steps = std::min(steps, voter.model->decoder().max_tokens());
    return steps;
  }

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    follow(parents);
    Workspace::Frame frame(space_);
    const bool whole = voters_.size() > 1 || constraints.keep_probabilities ||
        !voters_[0].output().has_logits();
    const float* next =
        whole ? vote(parents, tokens, frame) : logits(parents, tokens, frame);
    kept_.clear();
    candidates_.resize(tokens.size());
    for (size_t row = 0; row < tokens.size(); ++row) {
      Workspace::Frame own(space_);
      const std::span numbers(next, static_cast<size_t>(size_of(row)));
      WordScores scores =
          whole ? WordScores{numbers} : softmax_scores(numbers, own);
      scores.words = words_of(row);
      if (constraints.keep_probabilities)
        keep(scores);
      select_row(scores, constraints, row, count, candidates_[row]);
      next += numbers.size();
    }
    return candidates_;
  }

  std::span<const float> log_probabilities(int64_t row) const override {
    const auto size = static_cast<size_t>(vocabulary_size());
    return std::span(kept_).subspan(static_cast<size_t>(row) * size, size);
  }

 private:
  void follow(std::span<const int32_t> parents) {
    old_.swap(sentence_of_row_);
    sentence_of_row_.resize(parents.size());
    for (size_t i = 0; i < parents.size(); ++i)
      sentence_of_row_[i] = old_[static_cast<size_t>(parents[i])];
  }

  /// The words that a row may have next: none where it may have all.
  std::span<const int32_t> words_of(size_t row) const {
    if (words_ == nullptr)
      return {};
    return words_->words(sentence_of_row_[row]);
  }
  /// How many they are.
  int64_t size_of(size_t row) const {
    return words_ == nullptr ? vocabulary_size() : std::ssize(words_of(row));
  }
  int64_t size_of_all_rows() const {
    int64_t size = 0;
    for (size_t row = 0; row < sentence_of_row_.size(); ++row)
      size += size_of(row);
    return size;
  }

  /// Appends a row of the whole vocabulary.
  void keep(const WordScores& row) {
    const size_t first = kept_.size();
    if (row.words.empty()) {
      kept_.insert(kept_.end(), row.logits.begin(), row.logits.end());
      return;
    }
    kept_.resize(
        first + static_cast<size_t>(vocabulary_size()),
        -std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < row.logits.size(); ++i)
      kept_[first + static_cast<size_t>(row.token(i))] = row.logits[i];
  }

  /// Logits of one model's next tokens, row after row; log-probabilities of an
  /// adaptive softmax, which has no others.
  void run(
      Voter& voter,
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      float* out) {
    const int64_t rows = std::ssize(tokens);
    const Decoder& decoder = voter.model->decoder();
    Workspace::Frame frame(space_);
    float* const hidden = frame.take(rows * decoder.dim());
    decoder.step(
        parents,
        tokens,
        &voter.sources,
        sentence_of_row_,
        voter.past,
        hidden,
        space_);
    if (voter.listed)
      voter.listed->logits(sentence_of_row_, hidden, out, space_);
    else if (voter.output().has_logits())
      voter.output().logits().run(rows, hidden, out, space_);
    else
      voter.output().log_probabilities(rows, hidden, out, space_);
  }

  /// Those of the only model.
  const float* logits(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      Workspace::Frame& frame) {
    float* const out = frame.take(size_of_all_rows());
    run(voters_[0], parents, tokens, out);
    return out;
  }

  /// Log-probabilities of all models together.
  const float* vote(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      Workspace::Frame& frame) {
    const int64_t size = size_of_all_rows();
    const auto models = static_cast<int64_t>(voters_.size());
    float* const all = frame.take(size * models);
    for (int64_t m = 0; m < models; ++m) {
      float* own = all + m * size;
      Voter& voter = voters_[static_cast<size_t>(m)];
      run(voter, parents, tokens, own);
      if (!voter.output().has_logits())
        continue;
      for (size_t row = 0; row < tokens.size(); own += size_of(row++))
        kernels::log_softmax_row(own, size_of(row));
    }
    for (int64_t i = 0; models > 1 && i < size; ++i)
      all[i] = mean(all + i, size, models);
    return all;
  }

  /// log(mean of exp) of `count` numbers, `stride` apart.
  static float mean(const float* values, int64_t stride, int64_t count) {
    float highest = values[0];
    for (int64_t m = 1; m < count; ++m)
      highest = std::max(highest, values[m * stride]);
    if (!std::isfinite(highest))
      return highest;
    double sum = 0;
    for (int64_t m = 0; m < count; ++m)
      sum += std::exp(static_cast<double>(values[m * stride] - highest));
    return highest +
        static_cast<float>(std::log(sum / static_cast<double>(count)));
  }

  std::unique_ptr<const WordLists> words_;  // null: all words
  std::vector<Voter> voters_;
  Workspace space_;
  std::vector<int32_t> sentence_of_row_;
  std::vector<int32_t> old_;
  std::vector<float> kept_;  // [N, V] where they are asked for
  std::vector<std::vector<Candidate>> candidates_;
};

}  // namespace

std::unique_ptr<StepDecoder> make_step_decoder(
    std::vector<std::shared_ptr<const TranslationModel>> models,
    const std::vector<std::vector<int32_t>>& sources,
    std::unique_ptr<const WordLists> words) {
  return std::make_unique<RuntimeDecoder>(
      std::move(models),
      sources,
      std::move(words));
}

}  // namespace seqconv::runtime
