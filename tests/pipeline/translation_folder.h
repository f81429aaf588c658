#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "libtorch/backend/backend.h"
#include "libtorch/backend/model_folder.h"
#include "libtorch/backend/parameters.h"

namespace seqconv::internal::testing {

/// A folder of its own, and in it an untrained model over a few words.
class TranslationFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
        concat("seqconv-pipeline-", ::getpid(), "-", test_name());
    std::filesystem::remove_all(root_);
    create_folder(root_);
    write_file_atomically(root_ / "train", "eins zwei drei vier\nfünf sechs sieben\neins acht\n");
    make_model("model", 3);
  }

  void TearDown() override { std::filesystem::remove_all(root_); }

  static std::string test_name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  static ModelOptions options() {
    ModelOptions options;
    options.dim = 16;
    options.ffn_dim = 16;
    for (StackOptions* stack : {&options.encoder, &options.decoder}) {
      stack->layers = 1;
      stack->heads = 2;
      stack->kernel_sizes = {3};
    }
    return options;
  }

  /// The same with so many learned positions.
  static ModelOptions learned(int64_t positions) {
    ModelOptions learned = options();
    learned.positions = PositionKind::kLearned;
    learned.max_positions = positions;
    return learned;
  }

  void make_model(
      const std::string& name,
      uint64_t seed,
      const ModelOptions& architecture = options(),
      TextOptions text_options = {}) {
    text_options.subword = Subword::kNone;
    const std::string file = root_ / "train";
    const auto text = TranslationText::create(text_options, {file}, {file});
    write_description(TranslationDescription{
        .folder = root_ / name, .options = architecture, .text = text, .decoding = {.beam = 3}});
    const TranslationModelImpl model(
        architecture, text.source->vocabulary().size(), text.target->vocabulary().size(), seed);
    save_parameters(root_ / name / "model.safetensors", model, {});
  }

  /// The models of these names, ready to run; several vote.
  TranslationSystem open(const std::vector<std::string>& names) const {
    std::vector<RootedPath> paths;
    for (const std::string& name : names)
      paths.push_back(root_ / name);
    return open_translation(paths, TorchBackends());
  }

  template <class Function>
  static std::string message(Function&& function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path root_;
};

}  // namespace seqconv::internal::testing
