#pragma once

#include <array>
#include <string_view>

/// Which golden operator cases are run: all. A file whose operator is not on
/// the list fails OperatorGolden.EveryFileIsCovered.
namespace seqconv::internal::testing {

/// Run by some test program whose suite name contains 'Golden'.
inline constexpr auto kCoveredOperators = std::to_array<std::string_view>({
    "adam",
    "adaptive_input",
    "adaptive_softmax",
    "average_attention",
    "average_attention_gate",
    "clip_grad_norm",
    "cumulative_average",
    "depthwise_conv",
    "dynamic_conv",
    "dynamic_conv_layer",
    "label_smoothed_cross_entropy",
    "lightweight_conv",
    "local_attention",
    "lr_cosine",
    "lr_inverse_sqrt",
    "nag",
    "sinusoidal_positions",
    "talk_conv",
    "talk_conv_layer",
    "weight_normalization",
});

/// Whether `list` holds `name`.
template <class List>
constexpr bool listed(const List& list, std::string_view name) {
  for (const std::string_view entry : list)
    if (entry == name)
      return true;
  return false;
}

}  // namespace seqconv::internal::testing
