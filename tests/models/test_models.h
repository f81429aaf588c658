#pragma once

#include <random>
#include <string>
#include <vector>

#include "seqconv/data/batch.h"
#include "seqconv/models/translation_model.h"

namespace seqconv::testing {

/// A small two-layer model whose kernels are wider than its sentences.
inline ModelOptions small_options(BlockKind kind) {
  ModelOptions options;
  options.dim = 24;
  options.ffn_dim = 40;
  options.dropout = options.input_dropout = 0;
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 2;
    stack->block = {kind};
    stack->heads = 4;
    stack->glu = kind != BlockKind::kSelfAttention;
    if (kind == BlockKind::kTalk)
      stack->max_offsets = {2, 9};
    else
      stack->kernel_sizes = {3, 15};
  }
  return options;
}

/// Random sentences of the given source and target lengths (without </s>).
inline Batch random_batch(
    const std::vector<std::pair<int, int>>& lengths,
    int vocabulary,
    uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto sentence = [&](int length) {
    std::vector<int32_t> ids;
    for (int i = 0; i < length; ++i)
      ids.push_back(4 + static_cast<int32_t>(random() % (vocabulary - 4)));
    return ids;
  };
  std::vector<std::vector<int32_t>> sources, targets;
  for (const auto& [source, target] : lengths) {
    sources.push_back(sentence(source));
    targets.push_back(sentence(target));
  }
  return make_batch(sources, targets);
}

inline std::vector<BlockKind> all_block_kinds() {
  return {
      BlockKind::kLightConv,
      BlockKind::kDynamicConv,
      BlockKind::kTalk,
      BlockKind::kSelfAttention};
}

inline std::string block_test_name(
    const ::testing::TestParamInfo<BlockKind>& info) {
  switch (info.param) {
    case BlockKind::kLightConv:
      return "LightConv";
    case BlockKind::kDynamicConv:
      return "DynamicConv";
    case BlockKind::kTalk:
      return "Talk";
    case BlockKind::kSelfAttention:
      return "SelfAttention";
  }
  return "";
}

}  // namespace seqconv::testing
