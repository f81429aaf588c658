#pragma once

#include <string>
#include <vector>

#include "libtorch/models/test_language_models.h"

/// The models that both backends run: those of the model tests, and what is
/// more likely to go wrong where products are packed into tiles.
namespace seqconv::internal::testing {

/// Widths that fill no vector, and kernels that no sentence fills.
inline void add_sizes(std::vector<Variant>& variants) {
  using enum MixerKind;
  const auto add = [&](const std::string& name, MixerKind kind, auto change) {
    variants.push_back(variant(name, kind, change));
  };
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    add(concat("Odd_", name), kind, [](StackOptions& stack) { stack.heads = 5; });
    ModelOptions& options = variants.back().options;
    options.dim = 15;
    options.ffn_dim = 13;
    options.encoder.ffn_dim = 33;
    options.tie = Tying::kNone;
    options.input_dim = 11;
    options.output_dim = 17;
  }
  for (const auto& [name, kind] :
       {std::pair{"Light", kLightConv},
        {"Dynamic", kDynamicConv},
        {"Cnn", kCnn},
        {"Attention", kSelfAttention}}) {
    add(concat("Narrow", name), kind, [](StackOptions& stack) { stack.kernel_sizes = {1, 2}; });
    add(concat("Wide", name), kind, [](StackOptions& stack) { stack.kernel_sizes = {64, 51}; });
  }
  // Heads of one channel, and of four: they share vectors.
  for (const auto& [name, kind] :
       {std::pair{"Light", kLightConv}, {"Dynamic", kDynamicConv}, {"Talk", kTalk}})
    for (const int64_t heads : {36, 9}) {
      add(concat("Heads", heads, name), kind, [=](StackOptions& stack) { stack.heads = heads; });
      variants.back().options.dim = 36;
    }
  add("FarTalk", kTalk, [](StackOptions& stack) {
    stack.max_offsets = {1, 60};
    stack.heads = 1;
  });
  add("Tiny", kLightConv, [](StackOptions& stack) { stack.heads = 1; });
  variants.back().options.dim = 4;
  variants.back().options.ffn_dim = 1;
}

/// Options of the whole model.
inline void add_models(std::vector<Variant>& variants) {
  using enum MixerKind;
  const auto same = [](StackOptions&) {};
  const auto add = [&](const std::string& name, MixerKind kind) {
    variants.push_back(variant(name, kind, same));
    return &variants.back().options;
  };
  add("TiedToNothing", kDynamicConv)->tie = Tying::kNone;
  add("TiedDecoder", kTalk)->tie = Tying::kDecoder;
  add("Swish", kLightConv)->activation = FeedForwardActivation::kSwish;
  add("ReluInTalk", kTalk)->activation = FeedForwardActivation::kRelu;
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames)
    add(concat("PreNorm_", name), kind)->norm = NormPlacement::kPre;
  for (const auto& [name, kind] :
       {std::pair{"Dynamic", kDynamicConv}, {"Light", kLightConv}, {"Talk", kTalk}}) {
    ModelOptions* options = add(concat("NoGate", name), kind);
    options->encoder.glu = {false, true};
    options->decoder.glu = {true, false};
  }
  // What is dropped in training is not where a model runs.
  ModelOptions* options = add("Dropouts", kDynamicConv);
  options->dropout = options->input_dropout = options->attention_dropout =
      options->activation_dropout = options->weight_dropout = 0.4;
}

/// Translation models whose output is an adaptive softmax.
inline void add_adaptive(std::vector<Variant>& variants) {
  const auto add = [&](const std::string& name, auto change) {
    variants.push_back(variant(name, MixerKind::kDynamicConv, [](StackOptions&) {}));
    ModelOptions& options = variants.back().options;
    options.tie = Tying::kNone;
    options.adaptive.softmax_cutoffs = {7, 20};
    options.adaptive.softmax_factor = 2;
    change(options);
  };
  add("AdaptiveTranslation", [](ModelOptions&) {});
  add("AdaptiveTranslationOfOneTail", [](ModelOptions& options) {
    options.adaptive.softmax_cutoffs = {5};
    options.output_dim = 17;
  });
}

inline std::vector<Variant> runtime_variants() {
  std::vector<Variant> variants = all_variants();
  add_sizes(variants);
  add_models(variants);
  add_adaptive(variants);
  return variants;
}

/// The same as language models, and bands of the vocabulary.
inline std::vector<Variant> runtime_language_variants() {
  std::vector<Variant> variants = language_variants();
  std::vector<Variant> more;
  add_sizes(more);
  add_models(more);
  for (const Variant& variant : more)
    variants.push_back({variant.name, as_language_model(variant.options)});
  const auto add = [&](const std::string& name, auto change) {
    ModelOptions options = as_language_model(small_options(MixerKind::kLightConv));
    options.tie = Tying::kNone;
    change(options, options.adaptive);
    variants.push_back({name, options});
  };
  add("AdaptiveWholeVocabulary", [](ModelOptions&, AdaptiveOptions& adaptive) {
    adaptive.softmax_cutoffs = {5, 43};
  });
  add("AdaptiveSmallBands", [](ModelOptions& options, AdaptiveOptions& adaptive) {
    adaptive.softmax_cutoffs = adaptive.input_cutoffs = {4, 5, 6};
    adaptive.softmax_factor = adaptive.input_factor = 1.5;
    options.tie = Tying::kDecoder;
    adaptive.tie_projections = true;
  });
  add("AdaptiveInputAlone",
      [](ModelOptions&, AdaptiveOptions& adaptive) { adaptive.input_cutoffs = {20}; });
  add("AdaptiveAsInFairseq", [](ModelOptions&, AdaptiveOptions& adaptive) {
    adaptive.softmax_cutoffs = {7, 20};
    adaptive.fairseq_compatible = true;
  });
  return variants;
}

}  // namespace seqconv::internal::testing
