#include "runtime/layer.h"

#include <algorithm>

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
      conv_reach_(options.mixer.short_conv.reach()),
      placement_(options.norm),
      mixer_(make_mixer(options.mixer, weights, name + "block.")),
      mixer_norm_(weights, name + "block_norm"),
      feed_forward_(weights, name + "feed_forward.", options.activation, options.mixer.short_conv),
      feed_forward_norm_(weights, name + "feed_forward_norm"),
      block_conv_(find_short_conv(options.mixer.short_conv, dim_, weights, name + "block_conv")),
      feed_forward_conv_(
          find_short_conv(options.mixer.short_conv, dim_, weights, name + "feed_forward_conv")) {
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

template <class Mix>
void Layer::run_mixer(
    const RowOrder& order, LayerSteps* past, float* x, Workspace& space, const Mix& mix) const {
  const ShortConvRun conv{block_conv_.get(), order, past == nullptr ? nullptr : &past->block_conv};
  run_part(mixer_norm_, order.rows(), x, space, [&](LayerRows part) {
    Workspace::Frame frame(space);
    part.x = conv(part.x, part.x, frame, space);
    mix(part);
  });
}

template <class Before>
void Layer::finish(
    const RowOrder& order,
    LayerSteps* past,
    const SourceView* view,
    float* x,
    Workspace& space,
    const Before& before) const {
  const int64_t rows = order.rows();
  if (cross_attention_)
    run_part(*cross_attention_norm_, rows, x, space, [&](const auto& part) {
      before(part.x);
      cross_attention_->run(*view->sources, *view->memory, view->sentence_of_row, part, space);
    });
  const ShortConvRun conv{
      feed_forward_conv_.get(), order, past == nullptr ? nullptr : &past->feed_forward_conv};
  run_part(feed_forward_norm_, rows, x, space, [&](LayerRows part) {
    Workspace::Frame frame(space);
    part.x = conv(part.x, part.x, frame, space);
    feed_forward_.run(order, past == nullptr ? nullptr : &past->feed_forward, part, space);
  });
}

void Layer::forward(
    const Sequences& sequences, const SourceView* view, float* x, Workspace& space) const {
  const RowOrder order{.sequences = &sequences};
  run_mixer(order, nullptr, x, space, [&](const LayerRows& part) {
    mixer_->forward(sequences, part, space);
  });
  finish(order, nullptr, view, x, space, [](const float*) {});
}

void Layer::probe(
    const Sequences& sequences,
    const SourceView* view,
    LayerProbe& found,
    float* x,
    Workspace& space) const {
  const RowOrder order{.sequences = &sequences};
  run_mixer(order, nullptr, x, space, [&](const LayerRows& part) {
    found.mixer = mixer_->probe(order.rows(), part.x, space);
    mixer_->forward(sequences, part, space);
  });
  finish(order, nullptr, view, x, space, [&](const float* seen) {
    found.source = cross_attention_->probe(*view->sources, *view->memory, order.rows(), seen);
  });
}

std::vector<SourceShares> Layer::source_shares(
    const Sequences& sequences,
    const SourceView& view,
    std::span<const int64_t> heads,
    float* x,
    Workspace& space) const {
  const RowOrder order{.sequences = &sequences};
  run_mixer(order, nullptr, x, space, [&](const LayerRows& part) {
    mixer_->forward(sequences, part, space);
  });
  if (placement_ == NormPlacement::kPre)
    cross_attention_norm_->run(order.rows(), x, x);
  return cross_attention_->shares(*view.sources, *view.memory, sequences, heads, x, space);
}

void Layer::step(
    const Ancestry& ancestry,
    LayerSteps& past,
    const SourceView* view,
    float* x,
    Workspace& space) const {
  const RowOrder order{.ancestry = &ancestry};
  run_mixer(order, &past, x, space, [&](const LayerRows& part) {
    past.mixer->run(ancestry, part, space);
  });
  finish(order, &past, view, x, space, [](const float*) {});
}

int64_t Layer::reach() const {
  return std::max(mixer_->reach(), conv_reach_);
}

LayerSteps Layer::start(Workspace::Frame& kept) const {
  return {
      .mixer = mixer_->start(kept),
      .block_conv = runtime::start(block_conv_.get(), kept),
      .feed_forward_conv = runtime::start(feed_forward_conv_.get(), kept),
      .feed_forward = feed_forward_.start(kept)};
}

}  // namespace seqconv::internal::runtime
