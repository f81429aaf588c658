#pragma once

#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "libtorch/models/translation_model.h"
#include "text/corpus/batch.h"

namespace seqconv::internal::testing {

/// A small two-layer model whose kernels are wider than its sentences.
inline ModelOptions small_options(MixerKind kind) {
  ModelOptions options;
  options.dim = 24;
  options.ffn_dim = 40;
  options.dropout = options.input_dropout = 0;
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 2;
    stack->block = {kind};
    stack->heads = 4;
    stack->glu = kind == MixerKind::kLightConv || kind == MixerKind::kDynamicConv ||
        kind == MixerKind::kTalk;
    if (kind == MixerKind::kTalk)
      stack->max_offsets = {2, 9};
    else if (kind != MixerKind::kAverageAttention)
      stack->kernel_sizes = {3, 15};
  }
  return options;
}

/// Random sentences of the given source and target lengths (without </s>).
inline Batch random_batch(
    const std::vector<std::pair<int, int>>& lengths, int vocabulary, uint64_t seed) {
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

/// A model with a name: what the model tests run through.
struct Variant {
  std::string name;
  ModelOptions options;
};

inline std::ostream& operator<<(std::ostream& out, const Variant& variant) {
  return out << variant.name;
}

/// small_options(kind), changed on both sides.
template <class Change>
Variant variant(const std::string& name, MixerKind kind, const Change& change) {
  Variant result{name, small_options(kind)};
  for (StackOptions* stack : {&result.options.encoder, &result.options.decoder})
    change(*stack);
  return result;
}

/// What the sides of a model may have apart.
inline void add_unlike_sides(std::vector<Variant>& variants) {
  using enum MixerKind;
  const auto same = [](StackOptions&) {};
  variants.push_back(variant("PreNormEncoder", kDynamicConv, same));
  variants.back().options.encoder.norm = SideNorm::kPre;
  variants.back().options.decoder.ffn_dim = 56;
  variants.push_back(variant("PreNormDecoder", kTalk, same));
  variants.back().options.decoder.norm = SideNorm::kPre;
  // Heads of the encoder that do not divide dim.
  variants.push_back(variant("ConvDimOfTheEncoder", kLightConv, same));
  variants.back().options.encoder.conv_dim = {20};
  variants.back().options.encoder.heads = 5;
  variants.push_back(variant("WidthsOfWords", kDynamicConv, same));
  variants.back().options.tie = Tying::kNone;
  variants.back().options.input_dim = 12;
  variants.back().options.output_dim = 36;
  variants.push_back(variant("TiedWidthOfWords", kSelfAttention, same));
  variants.back().options.tie = Tying::kDecoder;
  variants.back().options.input_dim = 36;
  variants.back().options.output_dim = 36;
}

/// What the sides of a model may have of positions.
inline void add_positions(std::vector<Variant>& variants) {
  using enum MixerKind;
  const auto same = [](StackOptions&) {};
  const auto add = [&](const std::string& name, MixerKind kind) {
    variants.push_back(variant(name, kind, same));
    return &variants.back().options;
  };
  ModelOptions* options = add("LearnedPositionsOfTheEncoder", kLightConv);
  options->encoder.positions = SidePositions::kLearned;
  options->encoder.max_positions = 24;
  options = add("LearnedPositionsOfTheDecoder", kDynamicConv);
  options->decoder.positions = SidePositions::kLearned;
  options->max_positions = 48;
  options = add("LearnedPositionsUnlike", kTalk);
  options->positions = PositionKind::kLearned;
  options->encoder.max_positions = 24;
  options->decoder.max_positions = 48;
  add("NoPositions", kDynamicConv)->positions = PositionKind::kNone;
  options = add("NoPositionsOfTheEncoder", kSelfAttention);
  options->encoder.positions = SidePositions::kNone;
}

/// Short convolutions at every place and of all taps.
inline void add_short_convs(std::vector<Variant>& variants) {
  using enum MixerKind;
  const auto add = [&](const std::string& name, MixerKind kind, auto change) {
    variants.push_back(variant(name, kind, [&](StackOptions& stack) { change(stack.short_conv); }));
  };
  add("ShortConvQkv", kSelfAttention, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kQkv};
  });
  add("ShortConvQkvDynamic", kSelfAttention, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kQkv};
    conv.taps = {ShortConvTaps::kDynamic};
    conv.head_channels = {8};
    conv.activation = {ops::ConvActivation::kSilu};
    conv.bias = true;
  });
  add("ShortConvLinear", kSelfAttention, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kLinear};
    conv.taps = {ShortConvTaps::kDynamic};
    conv.kernel_size = {3, 7};
    conv.group_channels = {4};
    conv.head_channels = {2, 8};
    conv.residual = {true, false};
  });
  add("ShortConvLowRank", kSelfAttention, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kLinear};
    conv.taps = {ShortConvTaps::kLowRank};
    conv.rank = {3};
    conv.bias = {false, true};
    conv.residual = false;
  });
  add("ShortConvCanon", kDynamicConv, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kBlock};
    conv.group_channels = {24, 1};
  });
  add("ShortConvCanonLowRank", kTalk, [](ShortConvKeys& conv) {
    conv.place = {ShortConvPlace::kBlock};
    conv.taps = {ShortConvTaps::kLowRank};
    conv.head_channels = {0, 6};
    conv.rank = {5};
    conv.kernel_size = {1, 20};
    conv.activation = {ops::ConvActivation::kSilu, ops::ConvActivation::kNone};
  });
  variants.push_back(variant("ShortConvOfALayer", kLightConv, [](auto& stack) {
    stack.block = {kLightConv, kSelfAttention};
    stack.kernel_sizes = {3, 0};
    stack.glu = {true, false};
    stack.short_conv.place = {ShortConvPlace::kNone, ShortConvPlace::kQkv};
    stack.short_conv.kernel_size = {4, 9};
  }));
}

/// All kinds and all options that a layer can have, mixed in the last ones.
inline void add_mixtures(std::vector<Variant>& variants) {
  using enum MixerKind;
  variants.push_back(variant("WindowedAndFullAttention", kSelfAttention, [](auto& stack) {
    stack.kernel_sizes = {4, 0};
  }));
  variants.push_back(variant("AttentionBesideConvolution", kLightConv, [](auto& stack) {
    stack.block = {kLightConv, kSelfAttention};
    stack.kernel_sizes = {3, 0};
    stack.glu = {true, false};
    stack.conv_heads = {12, 0};
  }));
  variants.push_back(variant("EveryKind", kLightConv, [](auto& stack) {
    stack.layers = 6;
    stack.block = {kCnn, kTalk, kAverageAttention, kSelfAttention, kDynamicConv, kLightConv};
    stack.kernel_sizes = {2, 0, 0, 5, 7, 4};
    stack.max_offsets = {0, 5, 0, 0, 0, 0};
    stack.conv_heads = {0, 24, 0, 0, 8, 2};
    stack.glu = {false, true, false, false, false, true};
    stack.normalization = std::vector<ops::Normalization>(6, ops::Normalization::kSoftmax);
    stack.normalization[4] = ops::Normalization::kTanh;
    stack.normalization[5] = ops::Normalization::kAbsL2;
    stack.conv_bias = {true, false, false, false, true, false};
  }));
}

inline std::vector<Variant> all_variants() {
  using enum MixerKind;
  std::vector<Variant> variants;
  const auto same = [](StackOptions&) {};
  variants.push_back(variant("LightConv", kLightConv, same));
  variants.push_back(variant("DynamicConv", kDynamicConv, same));
  variants.push_back(variant("Talk", kTalk, same));
  variants.push_back(variant("SelfAttention", kSelfAttention, same));
  variants.push_back(variant("AverageAttention", kAverageAttention, same));
  variants.push_back(variant("Cnn", kCnn, same));
  for (const auto& [name, normalization] : EnumNames<ops::Normalization>::kNames) {
    const auto set = [value = normalization](StackOptions& stack) {
      stack.normalization = {value};
    };
    if (normalization == ops::Normalization::kSoftmax)
      continue;
    variants.push_back(variant(concat("LightConv_", name), kLightConv, set));
    variants.push_back(variant(concat("DynamicConv_", name), kDynamicConv, set));
  }
  variants.push_back(variant("Depthwise", kLightConv, [](auto& stack) {
    stack.conv_heads = {24};
    stack.normalization = {ops::Normalization::kNone};
    stack.conv_bias = true;
    stack.glu = false;
  }));
  variants.push_back(variant("DynamicBiases", kDynamicConv, [](auto& stack) {
    stack.conv_bias = {true, false};
    stack.filter_bias = {false, true};
  }));
  for (const auto& [name, kind] :
       {std::pair{"RenormalizedLight", kLightConv}, {"RenormalizedDynamic", kDynamicConv}})
    variants.push_back(variant(name, kind, [](auto& stack) {
      stack.renormalize_edges = {false, true};
    }));
  variants.push_back(variant(
      "Query", kDynamicConv, [](auto& stack) { stack.query = {QuerySource::kBlockInput}; }));
  variants.push_back(variant("TalkHeads", kTalk, [](auto& stack) { stack.conv_heads = {24}; }));
  variants.push_back(variant("CnnBias", kCnn, [](auto& stack) {
    stack.conv_bias = true;
    stack.kernel_sizes = {4, 1};
  }));
  variants.push_back(variant("AverageWithoutNetwork", kAverageAttention, [](auto& stack) {
    stack.average_ffn = {false, true};
  }));
  variants.push_back(variant("ConvDim", kDynamicConv, [](auto& stack) {
    stack.conv_dim = {16};
    stack.conv_bias = true;
  }));
  variants.push_back(variant("ConvDimOfALayer", kLightConv, [](auto& stack) {
    stack.conv_dim = {0, 40};
    stack.conv_heads = {12, 40};
    stack.glu = {false, true};
  }));
  variants.push_back(variant("ConvDimTalk", kTalk, [](auto& stack) { stack.conv_dim = {36, 4}; }));
  variants.push_back(variant("ConvDimQuery", kDynamicConv, [](auto& stack) {
    stack.conv_dim = {12};
    stack.query = {QuerySource::kBlockInput, QuerySource::kConvInput};
    stack.filter_bias = true;
  }));
  variants.push_back(
      variant("NarrowAverages", kAverageAttention, [](auto& stack) { stack.ffn_dim = 20; }));
  add_short_convs(variants);
  add_mixtures(variants);
  add_unlike_sides(variants);
  add_positions(variants);
  return variants;
}

/// Whether matrices that are so tied have the same width.
inline bool may_tie(const ModelOptions& options, Tying tie) {
  return tie == Tying::kNone ||
      (options.input_width() == options.output_width() &&
       (tie == Tying::kDecoder || options.input_width() == options.dim));
}

inline std::string variant_name(const ::testing::TestParamInfo<Variant>& info) {
  return info.param.name;
}

}  // namespace seqconv::internal::testing
