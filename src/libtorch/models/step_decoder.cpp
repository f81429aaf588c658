#include "search/step_decoder.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libtorch/models/decoder.h"
#include "libtorch/models/device_candidates.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/models/tensors.h"
#include "libtorch/models/translation_model.h"
#include "search/candidates.h"

namespace seqconv::internal {
namespace {

at::Tensor to_tensor(std::span<const int32_t> ids) {  // [N] int64
  at::Tensor out = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

bool is_identity(std::span<const int32_t> parents, int64_t rows) {
  if (static_cast<int64_t>(parents.size()) != rows)
    return false;
  for (size_t i = 0; i < parents.size(); ++i)
    if (parents[i] != static_cast<int32_t>(i))
      return false;
  return true;
}

/// Which sentence each row looks at, when that has changed.
struct Assignment {
  /// The sentences that stay, by their places in the present memory, [M'];
  /// undefined: all.
  at::Tensor kept;
  RowPlaces rows;
};

/// One model's share of the decoder: its state and its view of the source,
/// which is kept once a sentence however many rows look at it.
class ModelRows {
 public:
  ModelRows(TranslationModel model, const Batch& batch) : model_(std::move(model)) {
    DropoutPlan evaluation;
    const at::Tensor lengths = source_length_tensor(batch);
    const EncoderOutput memory = model_->encode(source_tensor(batch), lengths, evaluation);
    memories_ = model_->decoder().memories(
        memory.states, lengths_if_padded(lengths, batch.source_steps, model_->device()));
    state_ = model_->decoder().initial_state(batch.rows);
  }

  void reorder_rows(const at::Tensor& parents, const std::optional<Assignment>& changed) {
    for (LayerState& layer : state_.layers)
      layer.reorder(parents);
    if (!changed)
      return;
    for (CrossMemory& memory : memories_) {
      if (changed->kept.defined())
        memory.keep(changed->kept);
      memory.rows = changed->rows;
    }
  }

  /// tokens [N] -> log-probabilities of what comes next, [N, V].
  at::Tensor step(const at::Tensor& tokens) {
    const at::Tensor hidden =  // [N, 1, C]
        model_->decoder().step(tokens.unsqueeze(1), memories_, state_);
    return model_->output().log_probabilities(hidden.squeeze(1));
  }

  const TranslationModel& model() const { return model_; }

 private:
  TranslationModel model_;
  std::vector<CrossMemory> memories_;  // a layer, [M, H, S, R]
  DecoderState state_;
};

class ModelStepDecoder : public StepDecoder {
 public:
  ModelStepDecoder(const std::vector<TranslationModel>& models, const Batch& batch)
      : sentences_(batch.rows),
        kept_(batch.rows),
        sentence_of_row_(static_cast<size_t>(batch.rows)) {
    for (const TranslationModel& model : models)
      models_.emplace_back(model, batch);
    std::iota(sentence_of_row_.begin(), sentence_of_row_.end(), 0);
  }

  int64_t sentences() const override { return sentences_; }

  int64_t vocabulary_size() const override { return models_[0].model()->target_vocabulary(); }

  int64_t max_steps() const override {
    int64_t steps = models_[0].model()->decoder().embedding()->max_tokens();
    for (const ModelRows& rows : models_)
      steps = std::min(steps, rows.model()->decoder().embedding()->max_tokens());
    return steps;
  }

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    at::NoGradGuard no_grad;
    follow(parents);
    at::Tensor scores = combine(to_tensor(tokens));  // [N, V]
    if (chosen_there(scores, constraints, count)) {
      select_rows(scores, constraints, count, candidates_);
      return candidates_;
    }
    scores = ops::to_host(scores).contiguous();
    const int64_t vocabulary = scores.size(1);
    const float* data = scores.const_data_ptr<float>();
    candidates_.resize(tokens.size());
    for (size_t row = 0; row < tokens.size(); ++row) {
      const std::span<const float> log_probs(
          data + row * vocabulary, static_cast<size_t>(vocabulary));
      select_row({log_probs}, constraints, row, count, candidates_[row]);
      if (constraints.each_row)
        constraints.each_row({row, candidates_[row], log_probs});
    }
    return candidates_;
  }

 private:
  /// On a device, but where all scores are no more than twice as much to read, or single ones
  /// are asked for.
  static bool chosen_there(
      const at::Tensor& scores, const StepConstraints& constraints, int64_t count) {
    return !scores.is_cpu() && !constraints.each_row && count < scores.size(1) / 4 &&
        std::ranges::all_of(constraints.rows, &std::vector<int32_t>::empty, &RowConstraint::asked);
  }

  void follow(std::span<const int32_t> parents) {
    if (is_identity(parents, static_cast<int64_t>(sentence_of_row_.size())))
      return;
    std::vector<int32_t> sentence_of_row(parents.size());
    for (size_t i = 0; i < parents.size(); ++i)
      sentence_of_row[i] = sentence_of_row_[static_cast<size_t>(parents[i])];
    std::optional<Assignment> changed;
    if (sentence_of_row != sentence_of_row_)
      changed = assign(sentence_of_row);
    const at::Tensor parent_rows = there(to_tensor(parents));
    for (ModelRows& rows : models_)
      rows.reorder_rows(parent_rows, changed);
    sentence_of_row_ = std::move(sentence_of_row);
  }

  /// Sentences that no row looks at leave the memory: those of the rows change
  /// their numbers then.
  Assignment assign(std::vector<int32_t>& sentence_of_row) {
    std::vector<int32_t> kept = sentence_of_row;
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    Assignment assignment;
    if (static_cast<int64_t>(kept.size()) < kept_) {
      assignment.kept = there(to_tensor(kept));
      for (int32_t& sentence : sentence_of_row)
        sentence = static_cast<int32_t>(
            std::lower_bound(kept.begin(), kept.end(), sentence) - kept.begin());
      kept_ = static_cast<int64_t>(kept.size());
    }
    assignment.rows = place_rows(sentence_of_row, kept_);
    for (at::Tensor* places : {&assignment.rows.row_at, &assignment.rows.place_of})
      if (places->defined())
        *places = there(*places);
    return assignment;
  }

  at::Tensor there(const at::Tensor& ids) const {
    return ops::to_device(ids, models_[0].model()->device());
  }

  /// Log of the models' mean probability, [N, V].
  at::Tensor combine(const at::Tensor& tokens) {
    if (models_.size() == 1)
      return models_[0].step(tokens);
    std::vector<at::Tensor> parts;
    for (ModelRows& rows : models_)
      parts.push_back(rows.step(tokens));
    return at::logsumexp(at::stack(parts), {0}) - std::log(static_cast<double>(models_.size()));
  }

  std::vector<ModelRows> models_;
  int64_t sentences_;
  int64_t kept_;                          // sentences in the memory
  std::vector<int32_t> sentence_of_row_;  // by their places there
  std::vector<std::vector<Candidate>> candidates_;
};

}  // namespace

std::unique_ptr<StepDecoder> make_step_decoder(
    const std::vector<TranslationModel>& models, const Batch& batch) {
  SEQCONV_CHECK(!models.empty(), "decoding needs at least one model");
  for (const TranslationModel& model : models) {
    SEQCONV_CHECK(
        model->target_vocabulary() == models[0]->target_vocabulary(),
        "models of an ensemble must have the same target vocabulary, but got ",
        models[0]->target_vocabulary(),
        " and ",
        model->target_vocabulary(),
        " symbols");
  }
  at::NoGradGuard no_grad;
  return std::make_unique<ModelStepDecoder>(models, batch);
}

}  // namespace seqconv::internal
