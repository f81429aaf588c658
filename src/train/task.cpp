#include "train/task.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/options.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {

std::shared_ptr<TrainingTask> make_task(const TrainConfig& config, at::Device device) {
  switch (config.task) {
    case Task::kTranslation:
      return make_translation_task(config, device);
    case Task::kLanguageModel:
      return make_language_model_task(config, device);
  }
  fail("unknown task ", static_cast<int>(config.task));
}

std::string vocabulary_text(const TrainingTask& task) {
  const Json fields = task.describe();
  std::string text;
  for (const auto& [name, size] : fields.items()) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    text += concat(text.empty() ? "" : ", ", words, " ", size.dump());
  }
  return text + " symbols";
}

void copy_parameters(const SequenceModel& given, SequenceModel& fresh) {
  at::NoGradGuard no_grad;
  const auto values = given.named_parameters();
  for (const auto& item : fresh.named_parameters())
    at::Tensor(item.value()).copy_(ops::to_device(values[item.key()], item.value().device()));
}

}  // namespace seqconv::internal
