#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/layers.h"
#include "pipeline/system.h"

/// Tells what a model's layers look at while they read one sentence: a run of
/// its own, beside those that translate, for people who want to see inside.
namespace seqconv::internal {

namespace runtime {
class TranslationModel;
}

/// The meaning of the numbers of PositionWeights, for T positions and H heads.
enum class WeightForm {
  kNone,       ///< nothing that weighs positions apart
  kFixedTaps,  ///< [1, H, K]: taps of a kernel, the same for every sentence
  kTaps,       ///< [T, H, K]: taps of each position's own kernel
  /// [T, H, 2]: how many positions a window holds to the left and to the right
  /// of its own, within the sentence; a part of one counts as such.
  kReach,
  kPositions  ///< [T, H, S]: shares of all S positions, 0 for unseen ones
};

/// Holds how positions weigh others, head by head. Tap j of position t weighs
/// position t - padding_left + j, whether or not there is one.
struct PositionWeights {
  WeightForm form = WeightForm::kNone;
  int64_t heads = 0;
  int64_t width = 0;         ///< K, 2 or S
  int64_t padding_left = 0;  ///< of taps
  std::vector<float> values{};

  int64_t rows() const {
    const int64_t row = heads * width;
    return row == 0 ? 0 : static_cast<int64_t>(values.size()) / row;
  }
  float at(int64_t row, int64_t head, int64_t i) const {
    return values[static_cast<size_t>((row * heads + head) * width + i)];
  }
};

struct LayerProbe {
  LayerOptions options;
  PositionWeights mixer;
  PositionWeights source;  ///< of the look at the source: kPositions, or kNone
};

struct ModelProbe {
  std::vector<LayerProbe> encoder{};  ///< none in a language model
  std::vector<LayerProbe> decoder{};
  size_t source_tokens = 0;  ///< that the encoder read, </s> not counted
};

/// A translation model that is open to be probed, in its own type. Threads may share it.
class TranslationProber {
 public:
  /// Error as opening a model.
  explicit TranslationProber(const ModelToRun& model);
  ~TranslationProber();

  /// A sentence and its translation, as ids without </s>; both may be empty. The
  /// encoder reads </s> behind the source, the decoder before the target: its
  /// position t reads word t - 1 and predicts word t. A source beyond learned positions is cut,
  /// as the translator does. Numbers are those of the runtime. Error for ids outside the
  /// vocabularies, and for a target beyond learned positions.
  ModelProbe probe(std::vector<int32_t> source, std::span<const int32_t> target) const;

  int64_t weight_bytes() const;  ///< beside the model's file, which is mapped

 private:
  ModelOptions options_;
  std::unique_ptr<const runtime::TranslationModel> model_;
};

/// Probes a model that is opened for it.
ModelProbe probe_translation(
    const ModelToRun& model, std::vector<int32_t> source, std::span<const int32_t> target);

/// The same of a text that a language model reads, at least one id.
ModelProbe probe_language(const ModelToRun& model, std::span<const int32_t> ids);

}  // namespace seqconv::internal
