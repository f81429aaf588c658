#pragma once

#include "seqconv/pipeline/system.h"

/// The backend that runs models on the CPU without LibTorch, in float32.
namespace seqconv {

/// Opens models in the runtime. Weights are packed for the processor at hand,
/// once; backends share them among all threads. Products are summed in one
/// fixed order: a sentence's numbers depend on nothing else in its batch.
class RuntimeBackends : public BackendOpener {
 public:
  std::string_view name() const override { return "runtime"; }
  std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const override;
  std::shared_ptr<const LanguageBackend> language(
      const ModelToRun& model) const override;
};

}  // namespace seqconv
