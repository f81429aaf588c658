#pragma once

#include "seqconv/base/enum_names.h"
#include "seqconv/kernels/packed_linear.h"
#include "seqconv/pipeline/system.h"

/// The backend that runs models on the CPU without LibTorch.
namespace seqconv {

/// What products are made in.
enum class ComputeType {
  kModel,  ///< int8 for models of int8, float32 for others
  /// What is quickest here without another loss: int8 for models of int8; for
  /// others bfloat16 where the processor is known to be quicker in it.
  kAuto,
  kFloat32,
  kBfloat16,
  kInt8
};
template <>
struct EnumNames<ComputeType> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, ComputeType>>(
          {{"model", ComputeType::kModel},
           {"auto", ComputeType::kAuto},
           {"float32", ComputeType::kFloat32},
           {"bfloat16", ComputeType::kBfloat16},
           {"int8", ComputeType::kInt8}});
};

/// The type of a model's weights in memory, whose file is of type `stored`; the
/// same whenever it is asked on one machine.
kernels::WeightType weight_type(
    ComputeType compute,
    kernels::WeightType stored);

/// Opens models in the runtime. Weights are packed for the processor at hand,
/// once; backends share them among all threads. Products are summed in one
/// fixed order: a sentence's numbers depend on nothing else in its batch.
class RuntimeBackends : public BackendOpener {
 public:
  explicit RuntimeBackends(ComputeType compute = ComputeType::kModel)
      : compute_(compute) {}

  std::string_view name() const override { return "runtime"; }
  std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const override;
  std::shared_ptr<const LanguageBackend> language(
      const ModelToRun& model) const override;

 private:
  ComputeType compute_;
};

}  // namespace seqconv
