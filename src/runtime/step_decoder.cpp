#include "runtime/step_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/output_rows.h"

namespace seqconv::internal::runtime {
namespace {

/// One model's share of a decoder.
struct Member {
  std::shared_ptr<const TranslationModel> model;
  Sources sources;
  PastSteps past;
  std::optional<ListedOutput> listed;  ///< where not all words may come
  float* hidden = nullptr;             ///< of the step under way

  const Output& output() const { return model->decoder().output(); }
};

class RuntimeDecoder : public StepDecoder {
 public:
  RuntimeDecoder(
      std::vector<std::shared_ptr<const TranslationModel>> models,
      const std::vector<std::vector<int32_t>>& sources,
      DecoderMemory memory,
      std::unique_ptr<const WordLists> words)
      : words_(std::move(words)),
        memory_(std::move(memory)),
        spaces_(memory_.pool),
        kept_(spaces_->kept),
        space_(spaces_->scratch) {
    for (auto& model : models) {
      Sources read = model->read(sources, kept_, space_);
      PastSteps past = model->decoder().start(kept_);
      std::optional<ListedOutput> listed;
      if (words_ != nullptr)
        listed.emplace(model->decoder().output(), *words_, kept_);
      members_.push_back(
          {std::move(model), std::move(read), std::move(past), std::move(listed), nullptr});
    }
    for (size_t i = 0; i < sources.size(); ++i)
      sentence_of_row_.push_back(static_cast<int32_t>(i));
  }

  int64_t sentences() const override { return members_[0].sources.sequences.count(); }
  int64_t vocabulary_size() const override { return members_[0].model->decoder().vocabulary(); }
  int64_t max_steps() const override {
    int64_t steps = members_[0].model->decoder().max_tokens();
    for (const Member& member : members_)
      steps = std::min(steps, member.model->decoder().max_tokens());
    return steps;
  }

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    follow(parents);
    Workspace::Frame frame(space_);
    run_layers(parents, tokens, frame);
    candidates_.resize(tokens.size());
    for (size_t first = 0, end = 0; first < tokens.size(); first = end) {
      end = end_of_chunk(first);
      choose({first, end}, constraints, count);
    }
    return candidates_;
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
  /// Rows of a step, and what they have of logits.
  struct Rows {
    size_t first;
    size_t end;

    int64_t count() const { return static_cast<int64_t>(end - first); }
  };
  int64_t size_of(const Rows& rows) const {
    int64_t size = 0;
    for (size_t row = rows.first; row < rows.end; ++row)
      size += size_of(row);
    return size;
  }
  /// The end of the rows from `first` on whose logits fit in memory at a time:
  /// one at least.
  size_t end_of_chunk(size_t first) const {
    const auto most =
        memory_.logits_bytes / (std::ssize(members_) * static_cast<int64_t>(sizeof(float)));
    int64_t size = size_of(first);
    size_t end = first + 1;
    while (end < sentence_of_row_.size() && size + size_of(end) <= most)
      size += size_of(end++);
    return end;
  }

  /// Log-probabilities of the whole vocabulary.
  std::span<const float> of_all_words(const WordScores& scores, Workspace::Frame& frame) const {
    if (scores.words.empty())
      return scores.logits;
    const int64_t size = vocabulary_size();
    float* const all = frame.take(size);
    std::fill_n(all, size, -std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < scores.logits.size(); ++i)
      all[scores.token(i)] = scores.logits[i];
    return span_of(all, size);
  }

  /// The steps of all models: their hidden rows.
  void run_layers(
      std::span<const int32_t> parents, std::span<const int32_t> tokens, Workspace::Frame& frame) {
    for (Member& member : members_) {
      const Decoder& decoder = member.model->decoder();
      member.hidden = frame.take(std::ssize(tokens) * decoder.dim());
      decoder.step(
          parents, tokens, &member.sources, sentence_of_row_, member.past, member.hidden, space_);
    }
  }

  /// The candidates of some rows.
  void choose(const Rows& rows, const StepConstraints& constraints, int64_t count) {
    Workspace::Frame frame(space_);
    const bool whole =
        members_.size() > 1 || constraints.each_row || !members_[0].output().has_logits();
    const float* next = whole ? mean_of_models(rows, frame) : logits(rows, frame);
    for (size_t row = rows.first; row < rows.end; ++row) {
      Workspace::Frame own(space_);
      const std::span numbers(next, static_cast<size_t>(size_of(row)));
      WordScores scores = whole ? WordScores{numbers} : softmax_scores(numbers, own);
      scores.words = words_of(row);
      select_row(scores, constraints, row, count, candidates_[row]);
      if (constraints.each_row)
        constraints.each_row({row, candidates_[row], of_all_words(scores, own)});
      next += numbers.size();
    }
  }

  /// Logits of one model's next tokens, row after row; log-probabilities of an
  /// adaptive softmax, which has no others.
  void run(const Member& member, const Rows& rows, float* out) {
    const Decoder& decoder = member.model->decoder();
    const float* const hidden = member.hidden + static_cast<int64_t>(rows.first) * decoder.dim();
    const std::span all(sentence_of_row_);
    if (member.listed)
      member.listed->logits(all.subspan(rows.first, rows.end - rows.first), hidden, out, space_);
    else if (member.output().has_logits())
      member.output().logits().run(rows.count(), hidden, out, space_);
    else
      member.output().log_probabilities(rows.count(), hidden, out, space_);
  }

  /// Those of the only model.
  const float* logits(const Rows& rows, Workspace::Frame& frame) {
    float* const out = frame.take(size_of(rows));
    run(members_[0], rows, out);
    return out;
  }

  /// Log-probabilities of all models together.
  const float* mean_of_models(const Rows& rows, Workspace::Frame& frame) {
    const int64_t size = size_of(rows);
    const auto models = static_cast<int64_t>(members_.size());
    float* const all = frame.take(size * models);
    for (int64_t m = 0; m < models; ++m) {
      float* own = all + m * size;
      const Member& member = members_[static_cast<size_t>(m)];
      run(member, rows, own);
      if (!member.output().has_logits())
        continue;
      for (size_t row = rows.first; row < rows.end; own += size_of(row++))
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
    return highest + static_cast<float>(std::log(sum / static_cast<double>(count)));
  }

  std::unique_ptr<const WordLists> words_;  // null: all words
  DecoderMemory memory_;
  WorkspacePool::Loan spaces_;
  Workspace::Frame kept_;
  Workspace& space_;
  std::vector<Member> members_;
  std::vector<int32_t> sentence_of_row_;
  std::vector<int32_t> old_;
  std::vector<std::vector<Candidate>> candidates_;
};

}  // namespace

std::unique_ptr<StepDecoder> make_step_decoder(
    std::vector<std::shared_ptr<const TranslationModel>> models,
    const std::vector<std::vector<int32_t>>& sources,
    DecoderMemory memory,
    std::unique_ptr<const WordLists> words) {
  return std::make_unique<RuntimeDecoder>(
      std::move(models), sources, std::move(memory), std::move(words));
}

}  // namespace seqconv::internal::runtime
