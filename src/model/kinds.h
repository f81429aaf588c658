#pragma once

#include <array>
#include <utility>

#include "base/enum_names.h"

/// Lists what the parts of a model can be, by the names that configurations
/// have.
namespace seqconv::internal {

/// The work of a model: from one text to another, or on with one.
enum class Task { kTranslation, kLanguageModel };
template <>
struct EnumNames<Task> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Task>>(
      {{"translation", Task::kTranslation}, {"language_model", Task::kLanguageModel}});
};

/// Which side of a model a layer belongs to.
enum class Side { kEncoder, kDecoder };

/// Layer normalisation after the residual sum, or before each block.
enum class NormPlacement { kPost, kPre };
template <>
struct EnumNames<NormPlacement> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, NormPlacement>>(
      {{"post", NormPlacement::kPost}, {"pre", NormPlacement::kPre}});
};

/// The same of one side of the model; kAuto: that of the model.
enum class SideNorm { kAuto, kPost, kPre };
template <>
struct EnumNames<SideNorm> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, SideNorm>>(
      {{"auto", SideNorm::kAuto}, {"post", SideNorm::kPost}, {"pre", SideNorm::kPre}});
};
constexpr SideNorm as_side_norm(NormPlacement norm) {
  return norm == NormPlacement::kPre ? SideNorm::kPre : SideNorm::kPost;
}

/// Says what is added to words for where they stand; kNone: nothing.
enum class PositionKind { kSinusoidal, kLearned, kNone };
template <>
struct EnumNames<PositionKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, PositionKind>>(
      {{"sinusoidal", PositionKind::kSinusoidal},
       {"learned", PositionKind::kLearned},
       {"none", PositionKind::kNone}});
};

/// The same of one side of the model; kAuto: that of the model.
enum class SidePositions { kAuto, kSinusoidal, kLearned, kNone };
template <>
struct EnumNames<SidePositions> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, SidePositions>>(
      {{"auto", SidePositions::kAuto},
       {"sinusoidal", SidePositions::kSinusoidal},
       {"learned", SidePositions::kLearned},
       {"none", SidePositions::kNone}});
};
constexpr SidePositions as_side_positions(PositionKind kind) {
  return kind == PositionKind::kSinusoidal ? SidePositions::kSinusoidal
      : kind == PositionKind::kLearned     ? SidePositions::kLearned
                                           : SidePositions::kNone;
}

/// Which of source embedding, target embedding and output matrix are one. A
/// language model has no source: kDecoder and kAll are the same there.
enum class Tying { kNone, kDecoder, kAll };
template <>
struct EnumNames<Tying> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Tying>>(
      {{"none", Tying::kNone}, {"decoder", Tying::kDecoder}, {"all", Tying::kAll}});
};

/// The feed-forward activation; kAuto: swish in TaLK layers, ReLU elsewhere
/// (semantics.md 8.15).
enum class FeedForwardActivation { kAuto, kRelu, kSwish };
template <>
struct EnumNames<FeedForwardActivation> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, FeedForwardActivation>>(
      {{"auto", FeedForwardActivation::kAuto},
       {"relu", FeedForwardActivation::kRelu},
       {"swish", FeedForwardActivation::kSwish}});
};

}  // namespace seqconv::internal
