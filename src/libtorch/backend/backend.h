#pragma once

#include <memory>
#include <vector>

#include "libtorch/backend/model_folder.h"
#include "pipeline/system.h"
#include "text/corpus/batch.h"

/// The backend that runs the modules of `models`, and which others are compared
/// with. Its functions throw seqconv::internal::Error and nothing else.
namespace seqconv::internal {

/// Live modules as a backend, which shares their parameters: a change to them
/// shows. start() throws for an ensemble whose target vocabularies differ in
/// size.
/// Model i has alignment options i.
std::shared_ptr<const TranslationBackend> make_torch_backend(
    std::vector<TranslationModel> models, const std::vector<AlignmentOptions>& alignments);
std::shared_ptr<const LanguageBackend> make_torch_backend(LanguageModel model);

/// Tells what a batch's targets look at by resolved alignment options, of the shares
/// [B, H, T, S] of its layer: sentence by sentence, without padding.
std::vector<SourceShares> mean_of_heads(
    const at::Tensor& shares, const Batch& batch, const AlignmentOptions& alignment);

/// A loaded model with its modules as backend.
TranslationSystem make_system(const LoadedModel& loaded);
LanguageSystem make_system(const LoadedLanguageModel& loaded);

/// Opens models in LibTorch, on a device that open_device() gave. In bfloat16
/// parameters and activations are; sums and log-probabilities stay float32.
class TorchBackends : public BackendOpener {
 public:
  explicit TorchBackends(at::Device device = at::kCPU, at::ScalarType type = at::kFloat)
      : device_(device), type_(type) {}

  std::string_view name() const override { return "libtorch"; }
  std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const override;
  std::shared_ptr<const LanguageBackend> language(const ModelToRun& model) const override;

 private:
  at::Device device_;
  at::ScalarType type_;
};

}  // namespace seqconv::internal
