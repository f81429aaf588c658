#include "libtorch/models/translation_model.h"

#include <ATen/ops/from_blob.h>

#include "libtorch/models/decoder.h"
#include "libtorch/models/encoder.h"
#include "libtorch/models/guided_alignment.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/models/tensors.h"
#include "libtorch/nn/vocabulary_bands.h"
#include "model/parameters.h"
#include "search/alignment_options.h"

namespace seqconv::internal {

TranslationModelImpl::TranslationModelImpl(
    const ModelOptions& options,
    int64_t source_vocabulary,
    int64_t target_vocabulary,
    std::optional<uint64_t> seed,
    at::Device device)
    : options_(options),
      source_vocabulary_(source_vocabulary),
      target_vocabulary_(target_vocabulary) {
  options.validate("model");
  check_vocabulary(options, Task::kTranslation, {source_vocabulary, target_vocabulary});
  const InitGenerator generator = make_generator(seed, device);
  encoder_ = register_module(
      "encoder", std::make_shared<EncoderImpl>(options, source_vocabulary, generator));
  decoder_ = register_module(
      "decoder",
      std::make_shared<DecoderImpl>(
          options,
          Task::kTranslation,
          target_vocabulary,
          generator,
          options.tie == Tying::kAll ? encoder_->embedding()->table : at::Tensor()));
  output_ = register_module(
      "output",
      std::make_shared<OutputLayerImpl>(
          options,
          target_vocabulary,
          generator,
          options.tie == Tying::kNone ? Embedding(nullptr) : decoder_->embedding()));
}

EncoderOutput TranslationModelImpl::encode(
    const at::Tensor& source, const at::Tensor& lengths, DropoutPlan& plan) const {
  return {
      encoder_->forward(source, lengths_if_padded(lengths, source.size(1), device()), plan),
      lengths};
}

at::Device TranslationModelImpl::device() const {
  return decoder_->embedding()->device();
}

at::Tensor TranslationModelImpl::decode(
    const EncoderOutput& memory,
    const at::Tensor& target_in,
    DropoutPlan& plan,
    LayerLook* look) const {
  const auto memories = decoder_->memories(
      memory.states, lengths_if_padded(memory.lengths, memory.states.size(1), device()));
  return decoder_->forward(target_in, memories, plan, look);
}

LossSums TranslationModelImpl::loss(
    const Batch& batch, const LossOptions& options, DropoutPlan& plan) const {
  const EncoderOutput memory = encode(source_tensor(batch), source_length_tensor(batch), plan);
  const bool guided = options.guided_alignment > 0 && !batch.links.empty();
  const AlignmentOptions wanted = AlignmentOptions::guided(options_.decoder.layers);
  LayerLook look{{.head = wanted.heads.front()}, static_cast<size_t>(wanted.layer)};
  const at::Tensor hidden =  // [B, T, C]
      decode(memory, target_in_tensor(batch), plan, guided ? &look : nullptr);
  const auto sums = output_->loss(hidden, target_out_tensor(batch), options, plan);
  if (!guided)
    return {sums, sums.loss};
  return add_guided_alignment(sums, look.log_shares, batch, options);
}

at::Tensor TranslationModelImpl::target_log_probabilities(const Batch& batch) const {
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const EncoderOutput memory =
      encode(source_tensor(batch), source_length_tensor(batch), evaluation);
  const at::Tensor hidden =  // [B, T, C]
      decode(memory, target_in_tensor(batch), evaluation);
  const at::Tensor target = target_out_tensor(batch);
  return output_->target_log_probabilities(hidden, target)
      .masked_fill(ops::to_device(target.eq(kPadId), device()), 0);
}

void TranslationModelImpl::visit_source_shares(
    const Batch& batch,
    const std::function<void(int64_t layer, const at::Tensor& shares)>& take) const {
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const EncoderOutput memory =
      encode(source_tensor(batch), source_length_tensor(batch), evaluation);
  decoder_->visit_source_shares(
      target_in_tensor(batch),
      decoder_->memories(
          memory.states, lengths_if_padded(memory.lengths, memory.states.size(1), device())),
      take);
}

at::Tensor TranslationModelImpl::source_shares(
    const Batch& sources, const Batch& targets, int64_t layer) const {
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const EncoderOutput encoded =
      encode(source_tensor(sources), source_length_tensor(sources), evaluation);
  std::vector<CrossMemory> memories = decoder_->memories(
      encoded.states, lengths_if_padded(encoded.lengths, encoded.states.size(1), device()));
  for (CrossMemory& memory : memories)
    memory.rows.width = targets.rows / sources.rows;
  return decoder_->source_shares(target_in_tensor(targets), memories, static_cast<size_t>(layer));
}

}  // namespace seqconv::internal
