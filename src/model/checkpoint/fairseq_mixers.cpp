#include "model/checkpoint/fairseq_mixers.h"

#include <algorithm>

#include "base/error.h"

namespace seqconv::internal {
namespace {

constexpr FairseqMixer kMixers[] = {
    {MixerKind::kLightConv, "conv.weight", "lightweight"},
    {MixerKind::kDynamicConv, "conv.weight_linear.weight", "dynamic"},
    {MixerKind::kTalk, "conv.offsets.weight", nullptr}};

}  // namespace

std::span<const FairseqMixer> fairseq_mixers() {
  return kMixers;
}

const FairseqMixer* fairseq_mixer(MixerKind kind) {
  const auto* found = std::ranges::find(kMixers, kind, &FairseqMixer::kind);
  return found != std::end(kMixers) ? found : nullptr;
}

bool is_talk(MixerKind kind) {
  const FairseqMixer* mixer = fairseq_mixer(kind);
  return mixer && !mixer->conv_type;
}

std::optional<int64_t> heads_by_shape(
    MixerKind kind, const std::vector<int64_t>& shape, bool causal) {
  switch (kind) {
    case MixerKind::kLightConv:  // [H, 1, K]
      return shape[0];
    case MixerKind::kTalk:  // [H, C], or left and right
      return causal ? shape[0] : shape[0] / 2;
    default:
      return {};
  }
}

std::optional<int64_t> kernel_size_by_shape(
    MixerKind kind, const std::vector<int64_t>& shape, int64_t heads) {
  switch (kind) {
    case MixerKind::kLightConv:  // [H, 1, K]
      return shape.back();
    case MixerKind::kDynamicConv:  // [H * K, C]
      return heads > 0 && shape[0] % heads == 0 ? shape[0] / heads : -1;
    default:
      return {};
  }
}

std::string their_mixer_parameter(std::string_view ours) {
  return ours == "conv.weight_linear" ? "conv.weight_linear.weight" : std::string(ours);
}

std::vector<int64_t> their_shape(std::string_view name, const std::vector<int64_t>& shape) {
  if (name.ends_with(".conv.weight") && shape.size() == 2)
    return {shape[0], 1, shape[1]};
  return shape;
}

std::string why_not_theirs(const MixerOptions& mixer) {
  if (!fairseq_mixer(mixer.kind))
    return concat("its block is ", enum_name(mixer.kind));
  if (mixer.normalization != kernels::Normalization::kSoftmax &&
      mixer.normalization != kernels::Normalization::kNone)
    return concat("its normalization is ", enum_name(mixer.normalization));
  if (mixer.conv_bias || mixer.filter_bias)
    return "its convolution has a bias";
  if (mixer.renormalize_edges)
    return "its edges are renormalised";
  if (mixer.short_conv.exists())
    return "it has short convolutions";
  if (mixer.query != QuerySource::kConvInput)
    return "its kernels are predicted from the block's input";
  return {};
}

std::vector<int64_t> unused_bias_shape(const MixerOptions& mixer) {
  if (mixer.kind == MixerKind::kDynamicConv)
    return {1, 1, mixer.conv_dim};
  return {};
}

}  // namespace seqconv::internal
