#pragma once

#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>

#include "libtorch/models/sequence_model.h"

namespace seqconv::internal {

class DecoderImpl;
class OutputLayerImpl;
struct DecoderState;

/// A decoder without a source (semantics.md 2.1): pre-norm, no final norm. It
/// reads the target side of a batch.
class LanguageModelImpl : public SequenceModel {
 public:
  /// Draws its initial weights from `seed` (semantics.md 8.19); without one
  /// they are unset, to be read from a file. UsageError when the options do not
  /// fit a language model or the vocabulary. Once the weights are set, const
  /// functions are safe to call from several threads at a time. Its parameters
  /// are born on `device`; ids that it is given are best on the host.
  LanguageModelImpl(
      const ModelOptions& options,
      int64_t vocabulary,
      std::optional<uint64_t> seed = 1,
      at::Device device = at::kCPU);

  /// tokens [B, T] int64 -> hidden states [B, T, C].
  at::Tensor forward(const at::Tensor& tokens, DropoutPlan& plan) const;

  LossSums loss(const Batch& batch, const LossOptions& options, DropoutPlan& plan) const override;
  at::Tensor target_log_probabilities(const Batch& batch) const override;
  const ModelOptions& options() const override { return options_; }
  at::Device device() const override;

  int64_t vocabulary() const { return vocabulary_; }
  /// Most tokens of a sequence: of learned positions, or a very large number.
  int64_t max_tokens() const;
  DecoderImpl& decoder() const { return *decoder_; }
  OutputLayerImpl& output() const { return *output_; }

 private:
  ModelOptions options_;
  int64_t vocabulary_;
  std::shared_ptr<DecoderImpl> decoder_;
  std::shared_ptr<OutputLayerImpl> output_;
};
TORCH_MODULE(LanguageModel);

/// One text on which a language model goes on, token by token. For models
/// without attention its size does not depend on how much was read. Several
/// threads may go on with one model, each by a reader of its own.
class LanguageModelReader {
 public:
  explicit LanguageModelReader(LanguageModel model);
  ~LanguageModelReader();
  LanguageModelReader(LanguageModelReader&&) noexcept;

  /// Reads tokens and returns the natural log-probabilities [V] of what comes
  /// next. Longer texts are read in parallel, some hundred tokens at a time.
  /// Error when nothing is given, for ids outside the vocabulary, and when
  /// learned positions do not reach.
  at::Tensor read(const std::vector<int64_t>& tokens);

  int64_t tokens_read() const;

 private:
  LanguageModel model_;
  std::unique_ptr<DecoderState> state_;
};

}  // namespace seqconv::internal
