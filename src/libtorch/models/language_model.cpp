#include "libtorch/models/language_model.h"

#include <ATen/ops/tensor.h>

#include <algorithm>

#include "libtorch/models/decoder.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/models/tensors.h"
#include "libtorch/nn/vocabulary_bands.h"
#include "model/parameters.h"

namespace seqconv::internal {
namespace {

constexpr int64_t kReadAtATime = 512;

}  // namespace

LanguageModelImpl::LanguageModelImpl(
    const ModelOptions& options,
    int64_t vocabulary,
    std::optional<uint64_t> seed,
    at::Device device)
    : options_(options), vocabulary_(vocabulary) {
  options.validate("model", Task::kLanguageModel);
  check_vocabulary(options, Task::kLanguageModel, {0, vocabulary});
  const InitGenerator generator = make_generator(seed, device);
  decoder_ = register_module(
      "decoder",
      std::make_shared<DecoderImpl>(
          options, Task::kLanguageModel, vocabulary, generator, at::Tensor()));
  output_ = register_module(
      "output",
      std::make_shared<OutputLayerImpl>(
          options,
          vocabulary,
          generator,
          options.tie == Tying::kNone ? Embedding(nullptr) : decoder_->embedding()));
}

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens, DropoutPlan& plan) const {
  return decoder_->forward(tokens, {}, plan);
}

LossSums LanguageModelImpl::loss(
    const Batch& batch, const LossOptions& options, DropoutPlan& plan) const {
  const at::Tensor hidden = forward(target_in_tensor(batch), plan);
  const auto sums = output_->loss(hidden, target_out_tensor(batch), options, plan);
  return {sums, sums.loss};
}

at::Tensor LanguageModelImpl::target_log_probabilities(const Batch& batch) const {
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const at::Tensor hidden =  // [B, T, C]
      forward(target_in_tensor(batch), evaluation);
  const at::Tensor target = target_out_tensor(batch);
  return output_->target_log_probabilities(hidden, target)
      .masked_fill(ops::to_device(target.eq(kPadId), device()), 0);
}

at::Device LanguageModelImpl::device() const {
  return decoder_->embedding()->device();
}

int64_t LanguageModelImpl::max_tokens() const {
  return decoder_->embedding()->max_tokens();
}

LanguageModelReader::LanguageModelReader(LanguageModel model)
    : model_(std::move(model)),
      state_(std::make_unique<DecoderState>(model_->decoder().initial_state(1))) {}

LanguageModelReader::~LanguageModelReader() = default;
LanguageModelReader::LanguageModelReader(LanguageModelReader&&) noexcept = default;

int64_t LanguageModelReader::tokens_read() const {
  return state_->position.count;
}

at::Tensor LanguageModelReader::read(const std::vector<int64_t>& tokens) {
  SEQCONV_CHECK(!tokens.empty(), "a language model must be given a token");
  for (const int64_t token : tokens)
    SEQCONV_CHECK(
        token >= 0 && token < model_->vocabulary(),
        "tokens must be in [0, ",
        model_->vocabulary(),
        "), but got ",
        token);
  at::NoGradGuard no_grad;
  const at::Tensor ids =  // [1, T]
      at::tensor(tokens, at::kLong).unsqueeze(0);
  at::Tensor hidden;
  for (int64_t first = 0; first < ids.size(1); first += kReadAtATime)
    hidden = model_->decoder().step(
        ids.narrow(1, first, std::min(kReadAtATime, ids.size(1) - first)), {}, *state_);
  const at::Tensor last = hidden.select(1, hidden.size(1) - 1);  // [1, C]
  return model_->output().log_probabilities(last).squeeze(0);
}

}  // namespace seqconv::internal
