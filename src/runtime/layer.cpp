#include "runtime/layer.h"

#include "kernels/layer_norm.h"

namespace seqconv::internal::runtime {

void LayerNorm::run(int64_t rows, const float* x, float* y) const {
  kernels::layer_norm<float>(
      {.rows = rows,
       .channels = static_cast<int64_t>(weight_.size()),
       .x = x,
       .weight = weight_.data(),
       .bias = bias_.data(),
       .y = y},
      threads());
}

Layer::Layer(const LayerOptions& options, const Weights& weights, const std::string& name)
    : dim_(options.mixer.dim),
      placement_(options.norm),
      mixer_(make_mixer(options.mixer, weights, name + "block.")),
      mixer_norm_(weights, name + "block_norm"),
      feed_forward_(weights, name + "feed_forward.", options.activation),
      feed_forward_norm_(weights, name + "feed_forward_norm") {
  if (options.cross_heads == 0)
    return;
  cross_attention_.emplace(options.cross_heads, dim_, weights, name + "cross_attention.");
  cross_attention_norm_.emplace(weights, name + "cross_attention_norm");
}

/// x = norm(x + part(x)), or x + part(norm(x)).
template <class Part>
void Layer::run_part(
    const LayerNorm& norm, int64_t rows, float* x, Workspace& space, const Part& part) const {
  Workspace::Frame frame(space);
  float* const other = frame.take(rows * dim_);
  if (placement_ == NormPlacement::kPre) {
    norm.run(rows, x, other);
    part(LayerRows{.x = other, .residual = x, .y = x});
  } else {
    part(LayerRows{.x = x, .residual = x, .y = other});
    norm.run(rows, other, x);
  }
}

template <class Before>
void Layer::finish(
    int64_t rows, const SourceView* view, float* x, Workspace& space, const Before& before) const {
  if (cross_attention_)
    run_part(*cross_attention_norm_, rows, x, space, [&](const auto& part) {
      before(part.x);
      cross_attention_->run(*view->sources, *view->memory, view->sentence_of_row, part, space);
    });
  run_part(feed_forward_norm_, rows, x, space, [&](const auto& part) {
    feed_forward_.run({.rows = rows, .x = part.x, .residual = part.residual, .y = part.y}, space);
  });
}

void Layer::forward(
    const Sequences& sequences, const SourceView* view, float* x, Workspace& space) const {
  const int64_t rows = sequences.rows();
  run_part(mixer_norm_, rows, x, space, [&](const auto& part) {
    mixer_->forward(sequences, part, space);
  });
  finish(rows, view, x, space, [](const float*) {});
}

void Layer::probe(
    const Sequences& sequences,
    const SourceView* view,
    LayerProbe& found,
    float* x,
    Workspace& space) const {
  const int64_t rows = sequences.rows();
  run_part(mixer_norm_, rows, x, space, [&](const auto& part) {
    found.mixer = mixer_->probe(rows, part.x, space);
    mixer_->forward(sequences, part, space);
  });
  finish(rows, view, x, space, [&](const float* seen) {
    found.source = cross_attention_->probe(*view->sources, *view->memory, rows, seen);
  });
}

std::vector<SourceShares> Layer::source_shares(
    const Sequences& sequences,
    const SourceView& view,
    std::span<const int64_t> heads,
    float* x,
    Workspace& space) const {
  const int64_t rows = sequences.rows();
  run_part(mixer_norm_, rows, x, space, [&](const auto& part) {
    mixer_->forward(sequences, part, space);
  });
  if (placement_ == NormPlacement::kPre)
    cross_attention_norm_->run(rows, x, x);
  return cross_attention_->shares(*view.sources, *view.memory, sequences, heads, x, space);
}

void Layer::step(
    const Ancestry& ancestry,
    MixerSteps& past,
    const SourceView* view,
    float* x,
    Workspace& space) const {
  const int64_t rows = ancestry.steps() * ancestry.rows();
  run_part(mixer_norm_, rows, x, space, [&](const auto& part) { past.run(ancestry, part, space); });
  finish(rows, view, x, space, [](const float*) {});
}

}  // namespace seqconv::internal::runtime
