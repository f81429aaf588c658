#pragma once

#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libtorch/models/sequence_model.h"
#include "search/step_decoder.h"

namespace seqconv::internal {

/// Holds what the decoder sees of the source.
struct EncoderOutput {
  at::Tensor states;   ///< [B, S, C]
  at::Tensor lengths;  ///< [B] int64, where they were given
};

class EncoderImpl;
class DecoderImpl;
class OutputLayerImpl;
struct LayerLook;

/// Encoder-decoder of semantics.md 2.1. Returns hidden states; an output layer
/// turns them into losses, log-probabilities or candidates.
class TranslationModelImpl : public SequenceModel {
 public:
  /// Draws its initial weights from `seed` (semantics.md 8.19); without one
  /// they are unset, to be read from a file. Once they are set, const functions
  /// are safe to call from several threads at a time. Its parameters are born
  /// on `device`; ids and lengths that it is given are best on the host, where
  /// they are looked at.
  TranslationModelImpl(
      const ModelOptions& options,
      int64_t source_vocabulary,
      int64_t target_vocabulary,
      std::optional<uint64_t> seed = 1,
      at::Device device = at::kCPU);

  /// source [B, S] int64, right-padded; lengths [B] int64.
  EncoderOutput encode(
      const at::Tensor& source, const at::Tensor& lengths, DropoutPlan& plan) const;
  /// target_in [B, T] -> hidden states [B, T, C].
  at::Tensor decode(
      const EncoderOutput& memory,
      const at::Tensor& target_in,
      DropoutPlan& plan,
      LayerLook* look = nullptr) const;

  LossSums loss(const Batch& batch, const LossOptions& options, DropoutPlan& plan) const override;
  at::Tensor target_log_probabilities(const Batch& batch) const override;
  /// The shares of each head's look at the source in a layer of the decoder, without
  /// gradient: [B, H, T, S]. Row i of the targets' batch has source i of its own batch, or the
  /// only one.
  at::Tensor source_shares(const Batch& sources, const Batch& targets, int64_t layer) const;
  /// Gives `take` those of every layer, of one run of encoder and decoder.
  void visit_source_shares(
      const Batch& batch,
      const std::function<void(int64_t layer, const at::Tensor& shares)>& take) const;
  const ModelOptions& options() const override { return options_; }
  at::Device device() const override;
  int64_t source_vocabulary() const { return source_vocabulary_; }
  int64_t target_vocabulary() const { return target_vocabulary_; }
  DecoderImpl& decoder() const { return *decoder_; }
  OutputLayerImpl& output() const { return *output_; }

 private:
  ModelOptions options_;
  int64_t source_vocabulary_;
  int64_t target_vocabulary_;
  std::shared_ptr<EncoderImpl> encoder_;
  std::shared_ptr<DecoderImpl> decoder_;
  std::shared_ptr<OutputLayerImpl> output_;
};
TORCH_MODULE(TranslationModel);

/// A step decoder over one model, or over several that vote: the logarithm of
/// their mean probability. All must have the same target vocabulary.
/// batch: only its source side is read.
std::unique_ptr<StepDecoder> make_step_decoder(
    const std::vector<TranslationModel>& models, const Batch& batch);

}  // namespace seqconv::internal
