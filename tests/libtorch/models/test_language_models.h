#pragma once

#include <string>
#include <vector>

#include "test_models.h"

namespace seqconv::internal::testing {

/// A language model's options, of a translation model's decoder.
inline ModelOptions as_language_model(ModelOptions options) {
  options.encoder = ModelOptions{}.encoder;
  options.norm = NormPlacement::kPre;
  options.decoder.norm = SideNorm::kAuto;
  return options;
}

/// Every kind of block with one softmax, then DynamicConv with every way to
/// cut the vocabulary into bands.
inline std::vector<Variant> language_variants() {
  std::vector<Variant> variants;
  for (Variant& variant : all_variants())
    variants.push_back({variant.name, as_language_model(variant.options)});
  const auto add = [&](const std::string& name, Tying tie, auto change) {
    ModelOptions options = as_language_model(small_options(MixerKind::kDynamicConv));
    options.tie = tie;
    options.adaptive.softmax_cutoffs = {10, 20};
    options.adaptive.softmax_factor = 2;
    options.adaptive.input_factor = 2;
    change(options.adaptive);
    variants.push_back({name, options});
  };
  add("AdaptiveSoftmax", Tying::kNone, [](auto&) {});
  add("AdaptiveBoth", Tying::kNone, [](auto& adaptive) {
    adaptive.input_cutoffs = {8, 30};
    adaptive.input_dim = 32;
  });
  add("AdaptiveBothProjected", Tying::kNone, [](auto& adaptive) {
    adaptive.input_cutoffs = {8, 30};
  });
  variants.back().options.output_dim = 36;
  add("AdaptiveSoftmaxProjected", Tying::kNone, [](auto&) {});
  variants.back().options.input_dim = 12;
  variants.back().options.output_dim = 36;
  add("AdaptiveTied", Tying::kDecoder, [](auto& adaptive) { adaptive.input_cutoffs = {10, 20}; });
  add("AdaptiveTiedProjections", Tying::kDecoder, [](auto& adaptive) {
    adaptive.input_cutoffs = {10, 20};
    adaptive.input_dim = 28;
    adaptive.tie_projections = true;
  });
  return variants;
}

}  // namespace seqconv::internal::testing
