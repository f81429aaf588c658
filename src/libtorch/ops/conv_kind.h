#pragma once

/// The names of the two convolutions, for templates that serve both.
namespace seqconv::ops {

struct LightConvKind {
  static constexpr const char* kForward = "lightconv";
  static constexpr const char* kBackward = "lightconv_backward";
  static constexpr const char* kStep = "lightconv_step";
  static constexpr const char* kLogits = "weight";  ///< [H, K]
};

struct DynamicConvKind {
  static constexpr const char* kForward = "dynamicconv";
  static constexpr const char* kBackward = "dynamicconv_backward";
  static constexpr const char* kStep = "dynamicconv_step";
  static constexpr const char* kLogits = "logits";  ///< [B, T, H, K]
};

}  // namespace seqconv::ops
