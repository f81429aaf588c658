#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libtorch/backend/model_folder.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/fairseq_names.h"
#include "pipeline/system.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

/// A checkpoint of the reference code with what it computed, imported.
namespace seqconv::internal::testing {

/// What a folder of golden data is.
enum class GoldenKind {
  kTranslation,  ///< model.pt and outputs.json of a translation model
  kLanguage,     ///< the same of a language model
  kText,         ///< model.pt and golden.json: translations of raw text
};

/// Folders of a kind among those of golden_folder() and of its models/.
std::vector<std::filesystem::path> golden_folders(GoldenKind kind);

/// Translation and language models.
std::vector<std::filesystem::path> golden_model_folders();

/// Language models with an adaptive softmax.
std::vector<std::filesystem::path> golden_adaptive_folders();

/// The name of a test that such a folder is the parameter of.
std::string golden_model_name(const ::testing::TestParamInfo<std::filesystem::path>& info);

class GoldenModel {
 public:
  /// Imports model.pt of a golden folder with its dictionaries. What was
  /// recorded lies in `stem`.safetensors and `stem`.json.
  explicit GoldenModel(const std::filesystem::path& folder, const std::string& stem = "outputs");

  bool translates() const { return task_ == Task::kTranslation; }
  const Json& outputs() const { return outputs_; }
  /// A recorded tensor.
  const at::Tensor& recorded(const std::string& name) const;
  bool has(const std::string& name) const { return tensors_.contains(name); }
  std::vector<std::string> recorded_names(const std::string& prefix) const;

  /// The imported model as backends open it: that of LibTorch and the runtime.
  std::vector<std::shared_ptr<const TranslationBackend>> translation_backends() const;
  std::vector<std::shared_ptr<const LanguageBackend>> language_backends() const;

  /// Models with the imported parameters and no dropout.
  TranslationModel translation_model() const;
  LanguageModel language_model(bool fairseq_compatible = false) const;

  int64_t rows() const { return recorded("tgt_tokens").size(0); }
  /// Recorded tokens of a row without padding, [1, T]: kind "src", "tgt" or
  /// "prev_output".
  at::Tensor tokens(const std::string& kind, int64_t row) const;
  /// The ids of a row without </s>: kind "src" or "tgt".
  std::vector<int32_t> ids(const std::string& kind, int64_t row) const;
  /// Recorded rows as a batch, padded on the right.
  Batch batch(const std::vector<int64_t>& rows) const;

  /// The value that the reference calls `name`, out of ours.
  at::Tensor theirs(const std::string& name, const std::map<std::string, at::Tensor>& ours) const;
  const ModelOptions& options() const { return options_; }

 private:
  ModelToRun to_run() const;

  TemporaryFolder model_;
  Task task_ = Task::kTranslation;
  ModelOptions options_;
  VocabularySizes vocabulary_;
  FairseqLayout layout_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, at::Tensor> tensors_;
  Json outputs_;
};

}  // namespace seqconv::internal::testing
