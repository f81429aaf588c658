#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/layers.h"

/// What fairseq and the repository of TaLK call a mixer's settings and
/// parameters, in both directions. A kind that neither has needs nothing here:
/// it is refused by its name.
namespace seqconv::internal {

/// A kind of mixer as they have it.
struct FairseqMixer {
  MixerKind kind;
  /// The tensor of a layer ("conv.weight") that only this kind has. Its rows
  /// and columns tell heads and taps.
  const char* tensor;
  /// The setting conv_type, or nullptr: only the repository of TaLK has the
  /// kind, whose widths are reaches.
  const char* conv_type;
};

/// All that they have.
std::span<const FairseqMixer> fairseq_mixers();

/// The one of this kind, or nullptr.
const FairseqMixer* fairseq_mixer(MixerKind kind);

/// True for kinds that only the repository of TaLK has.
bool is_talk(MixerKind kind);

/// Heads by the shape of the telling tensor; empty: it does not say.
std::optional<int64_t> heads_by_shape(
    MixerKind kind, const std::vector<int64_t>& shape, bool causal);

/// Kernel width by the shape of the telling tensor; empty: it does not say, and
/// -1: its rows are not as many for each head.
std::optional<int64_t> kernel_size_by_shape(
    MixerKind kind, const std::vector<int64_t>& shape, int64_t heads);

/// Their name of a mixer's parameter, both without the layer's.
std::string their_mixer_parameter(std::string_view ours);

/// The shape under which they keep a tensor.
std::vector<int64_t> their_shape(std::string_view name, const std::vector<int64_t>& shape);

/// Why they have no module for a mixer ("its block is cnn"); empty: they have.
std::string why_not_theirs(const MixerOptions& mixer);

/// The shape of conv.conv_bias, which they register without ever using it;
/// empty: they register none.
std::vector<int64_t> unused_bias_shape(const MixerOptions& mixer);

}  // namespace seqconv::internal
