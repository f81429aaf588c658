#pragma once

#include <string>

#include "model/layers.h"
#include "model/parameter_list.h"
#include "model/size_checks.h"

/// What a kind of mixer reads, requires and learns, for the rest of the layer,
/// which knows no kinds. `path` is the side's key ("model.encoder").
namespace seqconv::internal {

/// The entries of a layer of a side that its kind reads, the decoder's when
/// `causal`.
MixerOptions mixer_options(
    const ModelOptions& model, const StackOptions& stack, int64_t layer, bool causal);

/// The activation of the feed-forward network beside it, where the options
/// leave it open (semantics.md 8.15).
kernels::Activation default_activation(MixerKind kind);

/// UsageError when a list has neither one entry nor one a layer, or says
/// something that no layer reads.
void check_mixer_lists(const StackOptions& stack, const std::string& path);

/// UsageError when a layer's entries make no sense in a model of width `dim`.
void check_mixer(
    const StackOptions& stack, int64_t layer, const Keyed& dim, const std::string& path);

/// Whether `heads` must divide the model's width for such a layer, which has
/// no width of its own.
bool is_as_wide_as_model(MixerKind kind);

/// Tells whether its linear maps may have short convolutions behind them.
bool takes_short_convs(MixerKind kind);

/// The short convolutions of a layer of a side, the decoder's when `causal`.
LayerShortConv layer_short_conv(const StackOptions& stack, int64_t layer, bool causal);

/// The keys with one entry a layer, so that equal short convolutions compare equal.
ShortConvKeys expanded_short_convs(const StackOptions& stack);

/// UsageError when the short convolutions of a side make no sense.
void check_short_convs(
    const StackOptions& stack, const std::string& path, const Keyed& dim, const Keyed& ffn_dim);

/// The parameters of a short convolution of so many channels, whose taps are
/// predicted from `query_channels`.
void add_short_conv_parameters(
    const LayerShortConv& conv,
    const std::string& name,
    int64_t channels,
    int64_t query_channels,
    ParameterList& list);

/// The mixer's parameters; `name` is what theirs begin with.
void add_mixer_parameters(const MixerOptions& mixer, const std::string& name, ParameterList& list);

}  // namespace seqconv::internal
