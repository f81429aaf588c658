#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <vector>

#include "pipeline/system.h"

/// Models with random parameters, as files that both backends open.
namespace seqconv::internal::testing {

/// What is held to LibTorch.
const BackendOpener& runtime();
/// What it is held to.
const BackendOpener& libtorch();

/// Parameters that are far from where training begins: nothing is zero or one,
/// and probabilities far from uniform, so that candidates are seldom tied.
void randomise(torch::nn::Module& model, uint64_t seed);

/// Writes such a model to `file`.
ModelToRun random_translation_model(
    const ModelOptions& options, const std::filesystem::path& file, uint64_t seed = 1);
ModelToRun random_language_model(
    const ModelOptions& options, const std::filesystem::path& file, uint64_t seed = 1);

/// Symbols of the two sides; the same number where all matrices are tied.
VocabularySizes random_vocabulary(const ModelOptions& options);

/// A sentence of any ids but </s>, special ones among them where `special`.
std::vector<int32_t> random_ids(
    size_t length, int64_t vocabulary, uint64_t seed, bool special = false);

/// Sentences of many lengths up to `longest`, from an empty one on, shuffled.
std::vector<std::vector<int32_t>> random_sentences(
    size_t count, size_t longest, int64_t vocabulary, uint64_t seed);

}  // namespace seqconv::internal::testing
