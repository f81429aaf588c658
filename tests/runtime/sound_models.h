#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/safetensors.h"
#include "model/parameters.h"
#include "pipeline/system.h"
#include "search/search.h"

/// Models with numbers at random, made without LibTorch.
namespace seqconv::internal::testing {

inline float number_of(uint64_t seed, uint64_t index) {
  return static_cast<float>(random_word(seed, index)) * 0x1p-31F - 1.0F;
}

/// Every kind of mixer, for tests that have them as their parameter.
inline std::vector<MixerKind> all_block_kinds() {
  std::vector<MixerKind> kinds;
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames)
    kinds.push_back(kind);
  return kinds;
}

/// Names such a test by its mixer.
inline std::string block_kind_name(const ::testing::TestParamInfo<MixerKind>& info) {
  return std::string(enum_name(info.param));
}

/// Short convolutions in layers of some kinds.
inline void add_short_convs(MixerKind kind, ShortConvKeys& conv) {
  if (kind == MixerKind::kSelfAttention) {
    conv.place = {ShortConvPlace::kLinear};
    conv.group_channels = {2};
  }
  if (kind == MixerKind::kDynamicConv) {
    conv.place = {ShortConvPlace::kBlock};
    conv.taps = {ShortConvTaps::kLowRank};
    conv.rank = {3};
  }
}

/// Rows of widths, heads and kernels that fill no vector.
inline ModelOptions options_of(MixerKind kind, Task task) {
  ModelOptions options = ModelOptions::defaults(task);
  options.dim = 10;
  options.ffn_dim = 14;
  options.tie = Tying::kDecoder;
  const auto fill = [&](StackOptions& stack) {
    stack.layers = 2;
    stack.heads = 2;
    stack.block = {kind};
    stack.glu = kind == MixerKind::kLightConv || kind == MixerKind::kDynamicConv ||
        kind == MixerKind::kTalk;
    if (kind == MixerKind::kTalk)
      stack.max_offsets = {2, 5};
    else if (kind != MixerKind::kAverageAttention)
      stack.kernel_sizes = {3, kind == MixerKind::kSelfAttention ? 0 : 6};
    add_short_convs(kind, stack.short_conv);
  };
  if (task == Task::kTranslation)
    fill(options.encoder);
  fill(options.decoder);
  options.validate("model", task);
  return options;
}

/// What is done to the numbers of a parameter.
using ChangeNumbers = std::function<void(const ParameterShape&, std::vector<float>&)>;

/// Writes such a model to `file`; another `seed` is another model.
inline ModelToRun write_sound_model(
    const ModelOptions& options,
    Task task,
    const std::filesystem::path& file,
    uint64_t seed = 0,
    const VocabularySizes& vocabulary = {19, 23},
    const ChangeNumbers& change = nullptr) {
  ModelToRun model{options, vocabulary, file};
  std::map<std::string, TensorView> views;
  std::vector<std::vector<float>> numbers;
  for (const ParameterShape& parameter : list_parameters(model.options, task, model.vocabulary)) {
    int64_t count = 1;
    for (const int64_t size : parameter.shape)
      count *= size;
    std::vector<float>& own = numbers.emplace_back(static_cast<size_t>(count));
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = number_of(1000 * seed + numbers.size(), i);
    if (change)
      change(parameter, own);
    views[parameter.name] = {ElementType::kF32, parameter.shape, std::as_bytes(std::span(own))};
  }
  write_safetensors(model.parameters, views, {});
  return model;
}

inline void expect_same_bytes(const Hypothesis& a, const Hypothesis& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.token_scores, b.token_scores);
  EXPECT_EQ(a.score, b.score);
}

}  // namespace seqconv::internal::testing
