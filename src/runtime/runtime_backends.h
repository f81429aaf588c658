#pragma once

#include "base/enum_names.h"
#include "kernels/packed_linear.h"
#include "pipeline/system.h"
#include "seqconv/requests.h"

/// The backend that runs models on the CPU without LibTorch.
namespace seqconv::internal {

template <>
struct EnumNames<ComputeType> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ComputeType>>(
      {{"model", ComputeType::kModel},
       {"auto", ComputeType::kAuto},
       {"float32", ComputeType::kFloat32},
       {"bfloat16", ComputeType::kBfloat16},
       {"int8", ComputeType::kInt8}});
};

/// The type of a model's weights in memory, whose file is of type `stored`; the
/// same whenever it is asked on one machine.
kernels::WeightType weight_type(ComputeType compute, kernels::WeightType stored);

/// Opens models in the runtime. Weights are packed for the processor at hand,
/// once; backends share them among all threads. Products are summed in one
/// fixed order: a sentence's numbers depend on nothing else in its batch.
class RuntimeBackends : public BackendOpener {
 public:
  /// logits_bytes: a step of a translation makes the logits of as many rows at
  /// a time as fit in it, of one at least. No number depends on it.
  explicit RuntimeBackends(
      ComputeType compute = ComputeType::kModel,
      int64_t logits_bytes = RuntimeOptions().logits_bytes)
      : compute_(compute), logits_bytes_(logits_bytes) {}

  std::string_view name() const override { return "runtime"; }
  std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const override;
  std::shared_ptr<const LanguageBackend> language(const ModelToRun& model) const override;

 private:
  ComputeType compute_;
  int64_t logits_bytes_;
};

}  // namespace seqconv::internal
