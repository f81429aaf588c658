#include "random_models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include "base/random.h"
#include "base/special_ids.h"
#include "libtorch/backend/backend.h"
#include "libtorch/backend/parameters.h"
#include "libtorch/models/language_model.h"
#include "libtorch/models/translation_model.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal::testing {
namespace fs = std::filesystem;

const BackendOpener& runtime() {
  static const RuntimeBackends kRuntime;
  return kRuntime;
}

const BackendOpener& libtorch() {
  static const TorchBackends kTorch;
  return kTorch;
}

void randomise(torch::nn::Module& model, uint64_t seed) {
  const at::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(seed);
  for (const auto& item : model.named_parameters()) {
    at::Tensor parameter = item.value();
    const at::Tensor noise = at::randn(parameter.sizes(), generator);
    // Vectors are biases, zero at first, and scales of norms, one.
    if (parameter.dim() == 1)
      parameter.add_(noise, 0.3);
    else
      parameter.mul_(1.6).add_(noise, 0.05);
  }
}

VocabularySizes random_vocabulary(const ModelOptions& options) {
  return {options.tie == Tying::kAll ? 43 : 31, 43};
}

ModelToRun random_translation_model(
    const ModelOptions& options, const fs::path& file, uint64_t seed) {
  const VocabularySizes sizes = random_vocabulary(options);
  TranslationModel model(options, sizes.source, sizes.target, seed);
  randomise(*model, seed);
  save_parameters(file, *model, {});
  return {options, sizes, file};
}

ModelToRun random_language_model(const ModelOptions& options, const fs::path& file, uint64_t seed) {
  const VocabularySizes sizes = {0, random_vocabulary(options).target};
  LanguageModel model(options, sizes.target, seed);
  randomise(*model, seed);
  save_parameters(file, *model, {});
  return {options, sizes, file};
}

std::vector<int32_t> random_ids(size_t length, int64_t vocabulary, uint64_t seed, bool special) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < length; ++i) {
    const auto word = static_cast<int64_t>(random_word(seed, i));
    const bool any = special && random_word(seed + 1, i) % 8 == 0;
    const int32_t id =
        static_cast<int32_t>(any ? word % kEndId : kUnknownId + word % (vocabulary - kUnknownId));
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::vector<int32_t>> random_sentences(
    size_t count, size_t longest, int64_t vocabulary, uint64_t seed) {
  std::vector<std::vector<int32_t>> sentences;
  for (size_t i = 0; i < count; ++i)
    sentences.push_back(random_ids(
        i * longest / std::max<size_t>(count - 1, 1),
        vocabulary,
        mix_words(seed, i),
        /*special=*/true));
  shuffle(sentences, seed);
  return sentences;
}

}  // namespace seqconv::internal::testing
