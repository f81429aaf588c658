#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/option_names.h"
#include "model/kinds.h"
#include "model/mixers.h"

/// The architecture of a model, as its TOML file says it. Torch-free.
namespace seqconv::internal {

/// [model.adaptive]: language models with a large vocabulary (semantics.md
/// 2.2), and the softmax of translation models, whose model.tie is none. Words
/// and matrices of input and softmax are one unless model.tie is none.
struct AdaptiveOptions {
  std::vector<int64_t> softmax_cutoffs;
  double softmax_factor = 4;
  double softmax_dropout = 0;
  std::vector<int64_t> input_cutoffs;
  double input_factor = 4;
  int64_t input_dim = 0;
  bool tie_projections = false;
  bool fairseq_compatible = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("softmax_cutoffs",
      softmax_cutoffs,
      R"(Adaptive softmax: ids at which its bands end, ascending, at least 4; [] = one softmax)");
    v("softmax_factor", softmax_factor, "Each tail is narrower by this, at least 1");
    v("softmax_dropout",
      softmax_dropout,
      "Dropout of the softmax's input and in its tails, in [0, 1)");
    v("input_cutoffs",
      input_cutoffs,
      R"(Adaptive input: ids at which its bands end, ascending, at least 4; [] = one table)");
    v("input_factor", input_factor, "Each band is narrower by this, at least 1");
    v("input_dim", input_dim, "Channels of the first band, 0 = model.dim");
    v("tie_projections", tie_projections, "The tails' projections are the input's, transposed");
    v("fairseq_compatible",
      fairseq_compatible,
      "Leave out the second word of every band, as fairseq does");
  }
};

/// [model].
struct ModelOptions {
  int64_t dim = 512;
  int64_t ffn_dim = 2048;
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  StackOptions encoder{.layers = 7};
  StackOptions decoder;
  NormPlacement norm = NormPlacement::kPost;
  FeedForwardActivation activation = FeedForwardActivation::kAuto;
  PositionKind positions = PositionKind::kSinusoidal;
  int64_t max_positions = 1024;
  Tying tie = Tying::kAll;
  double dropout = 0.1;
  double attention_dropout = 0;
  double activation_dropout = 0;
  double input_dropout = 0.1;
  double weight_dropout = 0;
  AdaptiveOptions adaptive;

  template <class Visitor>
  void visit(Visitor& v) {
    v("dim",
      dim,
      R"(Channels C of layers and, unless said otherwise, of embeddings, 1 to 1,048,576 (sinusoidal positions: at least 4))");
    v("ffn_dim", ffn_dim, "Channels inside the feed-forward blocks, 1 to 1,048,576");
    v("input_dim",
      input_dim,
      R"(Channels of the decoder's word embedding, which a linear map brings to dim; 0 = dim)");
    v("output_dim",
      output_dim,
      R"(Channels of the output matrix or adaptive softmax, to which a linear map brings the decoder's; 0 = dim)");
    v("encoder", encoder, "The encoder's layers");
    v("decoder", decoder, "The decoder's layers");
    v("norm",
      norm,
      R"(Layer normalisation: post or pre (language models: pre, by default and always))");
    v("activation",
      activation,
      "Feed-forward: relu, swish, or auto (swish in talk layers, else relu)");
    v("positions",
      positions,
      R"(Position embeddings: sinusoidal (no limit of length), learned or none)");
    v("max_positions",
      max_positions,
      R"(Longest side in tokens: learned positions, and what training keeps; 2 to 1,048,576)");
    v("tie",
      tie,
      R"(Shared matrices: all (needs a joined vocabulary), decoder or none; in language models all and decoder are the same)");
    v("dropout",
      dropout,
      "Dropout of embeddings and at the end of every block, in [0, 1)",
      KeyUse::kNoParameter);
    v("attention_dropout",
      attention_dropout,
      "Dropout of attention probabilities, in [0, 1)",
      KeyUse::kNoParameter);
    v("activation_dropout",
      activation_dropout,
      "Dropout after the feed-forward activation, in [0, 1)",
      KeyUse::kNoParameter);
    v("input_dropout",
      input_dropout,
      "Dropout before the first linear map of convolution blocks, in [0, 1)",
      KeyUse::kNoParameter);
    v("weight_dropout",
      weight_dropout,
      "DropConnect of convolution weights, offset dropout of talk, in [0, 1)",
      KeyUse::kNoParameter);
    v("adaptive", adaptive, "Adaptive input and softmax");
  }

  /// Channels of the decoder's table of words, and of the output's.
  int64_t input_width() const { return input_dim > 0 ? input_dim : dim; }
  int64_t output_width() const { return output_dim > 0 ? output_dim : dim; }

  /// Channels inside the feed-forward blocks of a side, encoder or decoder.
  int64_t ffn_dim_of(const StackOptions& side) const {
    return side.ffn_dim > 0 ? side.ffn_dim : ffn_dim;
  }
  /// The place of layer normalisation on a side, encoder or decoder.
  NormPlacement norm_of(const StackOptions& side) const;
  /// Position embeddings of a side.
  PositionKind positions_of(const StackOptions& side) const;
  /// Longest sequence of a side in tokens, </s> counted, that training keeps.
  int64_t max_positions_of(const StackOptions& side) const {
    return side.max_positions > 0 ? side.max_positions : max_positions;
  }
  /// The tokens of a side, </s> counted, that have learned positions, which no
  /// sequence may exceed; 0: they are not learned, and there is no limit.
  int64_t learned_positions(const StackOptions& side) const {
    return positions_of(side) == PositionKind::kLearned ? max_positions_of(side) : 0;
  }

  /// The defaults for a task: language models are pre-norm.
  static ModelOptions defaults(Task task);

  /// UsageError when a value makes no sense or two contradict each other; the
  /// message names the key, starting with `path` ("model"). A language model
  /// has a decoder alone, and its encoder must be left as it is by default.
  void validate(const std::string& path, Task task = Task::kTranslation) const;
};

}  // namespace seqconv::internal
