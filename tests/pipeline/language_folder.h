#pragma once

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libtorch/backend/backend.h"
#include "libtorch/backend/model_folder.h"
#include "libtorch/backend/parameters.h"
#include "libtorch/models/output_layer.h"
#include "support/temporary_folder.h"
#include "text/vocabulary.h"

namespace seqconv::internal::testing {

/// What an untrained language model is made of.
struct LanguageSettings {
  std::string training = "eins zwei drei vier\nfünf sechs sieben\neins acht\n";
  TextOptions text{.subword = Subword::kNone};
  StreamOptions stream;
  ModelOptions model = small_model();

  static ModelOptions small_model() {
    ModelOptions options = ModelOptions::defaults(Task::kLanguageModel);
    options.dim = options.ffn_dim = 16;
    options.decoder.layers = 2;
    options.decoder.heads = 2;
    options.decoder.kernel_sizes = {3, 4};
    options.tie = Tying::kNone;
    return options;
  }
};

/// A folder of its own for untrained language models.
class LanguageFolder : public ::testing::Test {
 protected:
  LanguageFolder() { at::set_num_threads(1); }  // nothing here is worth two

  LoadedLanguageModel make(const LanguageSettings& settings, const std::string& name = "model") {
    const std::string file = folder_.write("train", settings.training);
    const auto text = LanguageText::create(settings.text, {file});
    write_description(LanguageDescription{
        .folder = folder_.path() / name,
        .options = settings.model,
        .text = text,
        .stream = settings.stream});
    LanguageModelImpl model(settings.model, text.text->vocabulary().size(), 3);
    at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : model.parameters())
      parameter.mul_(2);  // further from a uniform distribution
    save_parameters(folder_.path() / name / "model.safetensors", model, {});
    return load_language_model(folder_.path() / name);
  }

  TemporaryFolder folder_;
};

/// Natural log-probabilities [V] of what follows `read`, by one forward pass
/// over exactly these tokens.
inline at::Tensor next_probabilities(
    const LoadedLanguageModel& model, const std::vector<int64_t>& read) {
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const at::Tensor hidden =  // [1, T, C]
      model.model->forward(at::tensor(read, at::kLong).unsqueeze(0), evaluation);
  return model.model->output().log_probabilities(hidden.select(1, hidden.size(1) - 1)).squeeze(0);
}

}  // namespace seqconv::internal::testing
