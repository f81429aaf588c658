#include "model/parameters.h"

#include <cmath>

#include "base/special_ids.h"
#include "model/mixer_rules.h"

namespace seqconv::internal {
namespace {

/// Collects parameters as the modules register them.
class Lister {
 public:
  explicit Lister(const ModelOptions& model) : model_(model) {}

  void encoder(int64_t vocabulary) {
    list_.matrix("encoder.embedding.weight", vocabulary, model_.dim);
    positions("encoder.embedding", model_.encoder);
    for (int64_t i = 0; i < model_.encoder.layers; ++i) {
      const std::string layer = concat("encoder.layer", i, ".");
      const LayerOptions options = layer_options(model_, Task::kTranslation, Side::kEncoder, i);
      add_mixer_parameters(options.mixer, layer + "block.", list_);
      norm(layer + "block_norm");
      feed_forward(layer, options);
    }
    if (model_.norm_of(model_.encoder) == NormPlacement::kPre)
      norm("encoder.final_norm");
  }

  void decoder(Task task, int64_t vocabulary) {
    const bool translates = task == Task::kTranslation;
    embedding(vocabulary, /*shared=*/translates && model_.tie == Tying::kAll);
    for (int64_t i = 0; i < model_.decoder.layers; ++i) {
      const std::string layer = concat("decoder.layer", i, ".");
      const LayerOptions options = layer_options(model_, task, Side::kDecoder, i);
      add_mixer_parameters(options.mixer, layer + "block.", list_);
      norm(layer + "block_norm");
      if (options.cross_heads > 0)
        cross_attention(layer);
      feed_forward(layer, options);
    }
    if (translates && model_.norm_of(model_.decoder) == NormPlacement::kPre)
      norm("decoder.final_norm");
  }

  void output(int64_t vocabulary) {
    if (model_.output_width() != model_.dim)
      list_.matrix("output.projection", model_.output_width(), model_.dim);
    if (!model_.adaptive.softmax_cutoffs.empty())
      adaptive_softmax(vocabulary);
    else if (model_.tie == Tying::kNone)
      list_.matrix("output.weight", vocabulary, model_.output_width());
  }

  std::vector<ParameterShape> take() { return std::move(list_.all); }

 private:
  void norm(const std::string& name) {
    list_.add(name + ".weight", {model_.dim});
    list_.add(name + ".bias", {model_.dim});
  }

  /// The network, its norm, and the short convolutions in front of the parts.
  void feed_forward(const std::string& layer, const LayerOptions& options) {
    const int64_t dim = model_.dim, hidden = options.ffn_dim;
    const LayerShortConv& conv = options.mixer.short_conv;
    list_.linear(layer + "feed_forward.fc1", hidden, dim);
    list_.linear(layer + "feed_forward.fc2", dim, hidden);
    if (conv.behind_linear()) {
      add_short_conv_parameters(conv, layer + "feed_forward.conv1", hidden, dim, list_);
      add_short_conv_parameters(conv, layer + "feed_forward.conv2", dim, hidden, list_);
    }
    norm(layer + "feed_forward_norm");
    if (conv.before_blocks()) {
      add_short_conv_parameters(conv, layer + "block_conv", dim, dim, list_);
      add_short_conv_parameters(conv, layer + "feed_forward_conv", dim, dim, list_);
    }
  }

  void cross_attention(const std::string& layer) {
    list_.linear(layer + "cross_attention.query_proj", model_.dim, model_.dim);
    list_.linear(layer + "cross_attention.key_value_proj", 2 * model_.dim, model_.dim);
    list_.linear(layer + "cross_attention.out_proj", model_.dim, model_.dim);
    norm(layer + "cross_attention_norm");
  }

  int64_t first_band_width() const {
    const int64_t width = model_.adaptive.input_dim;
    return width > 0 ? width : model_.dim;
  }

  static int64_t narrowed(int64_t width, double factor, int64_t band) {
    return static_cast<int64_t>(
        static_cast<double>(width) / std::pow(factor, static_cast<double>(band)));
  }

  void positions(const std::string& embedding, const StackOptions& side) {
    if (const int64_t learned = model_.learned_positions(side); learned > 0)
      list_.add(embedding + ".positions", {learned + kFirstPosition, model_.dim});
  }

  /// The decoder's, as a module has it: its own parameters first, then those of
  /// `bands`.
  void embedding(int64_t vocabulary, bool shared) {
    const std::string name = "decoder.embedding";
    const AdaptiveOptions& adaptive = model_.adaptive;
    if (adaptive.input_cutoffs.empty() && !shared)
      list_.matrix(name + ".weight", vocabulary, model_.input_width());
    if (model_.input_width() != model_.dim)
      list_.matrix(name + ".projection", model_.dim, model_.input_width());
    positions(name, model_.decoder);
    if (adaptive.input_cutoffs.empty())
      return;
    int64_t begin = 0;
    int64_t band = 0;
    for (const int64_t end : band_ends(adaptive.input_cutoffs, vocabulary)) {
      const int64_t width = narrowed(first_band_width(), adaptive.input_factor, band);
      list_.matrix(concat(name, ".bands.table", band), end - begin, width);
      // Projections that the output shares are used by columns too.
      const std::string projection = concat(name, ".bands.projection", band);
      if (adaptive.tie_projections)
        list_.add(projection, {model_.dim, width});
      else
        list_.matrix(projection, model_.dim, width);
      begin = end;
      ++band;
    }
  }

  void adaptive_softmax(int64_t vocabulary) {
    const AdaptiveOptions& adaptive = model_.adaptive;
    const int64_t hidden = model_.output_width();
    const bool tied = model_.tie != Tying::kNone;
    const std::vector<int64_t> ends = band_ends(adaptive.softmax_cutoffs, vocabulary);
    const auto tails = static_cast<int64_t>(ends.size()) - 1;
    if (tied) {
      if (first_band_width() != hidden)
        list_.matrix("output.adaptive.head_projection", first_band_width(), hidden);
      list_.matrix("output.adaptive.class_projection", tails, hidden);
    } else {
      list_.matrix("output.adaptive.head", ends[0] + tails, hidden);
    }
    for (int64_t i = 0; i < tails; ++i) {
      const std::string tail = concat("output.adaptive.tail", i);
      const int64_t width = tied ? narrowed(first_band_width(), adaptive.input_factor, i + 1)
                                 : narrowed(hidden, adaptive.softmax_factor, i + 1);
      const auto at = static_cast<size_t>(i);
      if (!adaptive.tie_projections)
        list_.matrix(tail + "_projection", width, hidden);
      if (!tied)
        list_.matrix(tail + "_words", ends[at + 1] - ends[at], width);
    }
  }

  const ModelOptions& model_;
  ParameterList list_;
};

}  // namespace

std::vector<int64_t> band_ends(const std::vector<int64_t>& cutoffs, int64_t vocabulary) {
  std::vector<int64_t> ends = cutoffs;
  if (ends.empty() || ends.back() < vocabulary)
    ends.push_back(vocabulary);
  return ends;
}

void check_vocabulary(const ModelOptions& options, Task task, const VocabularySizes& vocabulary) {
  if (task == Task::kTranslation) {
    if (options.tie == Tying::kAll && vocabulary.source != vocabulary.target)
      fail_usage(
          "model.tie = \"all\" needs one vocabulary for both sides (text.joined = true), but got ",
          vocabulary.source,
          " source and ",
          vocabulary.target,
          " target symbols");
  }
  const auto check = [&](const char* key, const std::vector<int64_t>& cutoffs) {
    if (!cutoffs.empty() && cutoffs.back() > vocabulary.target)
      fail_usage(
          "model.adaptive.",
          key,
          " must be at most the vocabulary of ",
          vocabulary.target,
          " symbols, but got ",
          cutoffs.back());
  };
  check("softmax_cutoffs", options.adaptive.softmax_cutoffs);
  check("input_cutoffs", options.adaptive.input_cutoffs);
}

std::vector<ParameterShape> list_parameters(
    const ModelOptions& options, Task task, const VocabularySizes& vocabulary) {
  Lister lister(options);
  if (task == Task::kTranslation)
    lister.encoder(vocabulary.source);
  lister.decoder(task, vocabulary.target);
  lister.output(vocabulary.target);
  return lister.take();
}

int64_t parameter_count(const std::vector<ParameterShape>& parameters) {
  int64_t total = 0;
  for (const ParameterShape& parameter : parameters) {
    int64_t count = 1;
    for (const int64_t size : parameter.shape)
      count *= size;
    total += count;
  }
  return total;
}

}  // namespace seqconv::internal
