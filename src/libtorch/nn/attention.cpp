#include "libtorch/nn/attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libtorch/ops/elementwise.h"
#include "libtorch/ops/product_sizes.h"

namespace seqconv::internal {
namespace {

const double kProjectionGain = 1.0 / std::sqrt(2.0);

/// [B, T, C] -> [B, H, T, R], a view.
at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

/// [B, H, T, R] -> [B, T, C].
at::Tensor join_heads(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

/// query key^T / sqrt(R), [..., T, S], -infinity where the mask says so.
at::Tensor scores_of(
    const at::Tensor& query, const at::Tensor& key, const std::optional<at::Tensor>& mask) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
  at::Tensor scores = at::matmul(query * scale, key.transpose(-1, -2));
  if (mask)
    scores = scores.masked_fill(mask->logical_not(), -std::numeric_limits<double>::infinity());
  return scores;
}

/// softmax(query key^T / sqrt(R)), [N, H, T, S].
at::Tensor probabilities_of(
    const at::Tensor& query, const at::Tensor& key, const std::optional<at::Tensor>& mask) {
  return at::softmax(scores_of(query, key, mask), -1);
}

/// Its logarithm of one head, in float32 of 16 bits: query [B, T, R], key [B, S, R], mask
/// [B, 1, 1, S] -> [B, T, S].
at::Tensor log_probabilities_of(
    const at::Tensor& query, const at::Tensor& key, const std::optional<at::Tensor>& mask) {
  const auto type = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return at::log_softmax(
      scores_of(
          query.to(type), key.to(type), mask ? std::optional(mask->select(1, 0)) : std::nullopt),
      -1);
}

/// The mask of local_attention, [1 or B, 1, T, T], or empty: all is seen.
std::optional<at::Tensor> local_mask(
    int64_t steps, const LocalAttentionOptions& options, at::Device device) {
  const bool windowed = options.kernel_size > 0;
  if (!windowed && !options.causal && !options.lengths)
    return {};
  const int64_t kernel_size = windowed ? options.kernel_size
      : options.causal                 ? steps
                                       : 2 * steps + 1;
  const int64_t padding_left = options.causal ? kernel_size - 1 : kernel_size / 2;
  at::Tensor mask = window_mask(steps, kernel_size, padding_left, device).unsqueeze(0);
  if (options.lengths) {
    const at::Tensor valid = length_mask(*options.lengths, steps);  // [B, T]
    // A padded row sees itself, so that its softmax stays defined.
    const at::Tensor itself = at::eye(steps, mask.options()).logical_and(~valid.unsqueeze(-1));
    mask = mask.logical_and(valid.unsqueeze(1)).logical_or(itself);
  }
  return mask.unsqueeze(1);
}

}  // namespace

at::Tensor attend(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    DropoutPlan& plan) {
  const ops::Seed seed = plan.next_seed();
  const double rate = plan.rate(dropout);
  if (rate == 0 && ops::wants_few_sizes(query))  // of which it has many
    return at::scaled_dot_product_attention(
               query.to(at::kFloat), key.to(at::kFloat), value.to(at::kFloat), mask)
        .to(query.scalar_type());
  if (rate == 0)
    return at::scaled_dot_product_attention(query, key, value, mask);
  return at::matmul(ops::dropout(probabilities_of(query, key, mask), rate, seed), value);
}

at::Tensor window_mask(
    int64_t steps, int64_t kernel_size, int64_t padding_left, at::Device device) {
  const at::Tensor place = at::arange(steps, device);
  const at::Tensor distance = place.unsqueeze(0) - place.unsqueeze(1);
  return distance.ge(-padding_left).logical_and(distance.le(kernel_size - 1 - padding_left));
}

at::Tensor length_mask(const at::Tensor& lengths, int64_t steps) {
  return at::arange(steps, lengths.device()).unsqueeze(0).lt(lengths.unsqueeze(1));
}

at::Tensor local_attention(
    const at::Tensor& q,
    const at::Tensor& k,
    const at::Tensor& v,
    const LocalAttentionOptions& options,
    DropoutPlan& plan) {
  const int64_t steps = q.size(1);
  at::Tensor y = join_heads(attend(
      split_heads(q, options.heads),
      split_heads(k, options.heads),
      split_heads(v, options.heads),
      local_mask(steps, options, q.device()),
      options.dropout,
      plan));
  if (options.lengths)
    y = y * length_mask(*options.lengths, steps).unsqueeze(-1);
  return y;
}

SelfAttentionImpl::SelfAttentionImpl(
    const SelfAttentionOptions& options, const InitGenerator& generator)
    : options_(options) {
  const int64_t channels = options.channels;
  in_proj_ = register_module(
      "in_proj", Linear(channels, 3 * channels, generator, /*blocks=*/3, kProjectionGain));
  in_proj_->draw_bias_by_fan_in(generator);
  out_proj_ = register_module("out_proj", Linear(channels, channels, generator));
  if (options.in_conv)
    in_conv_ = register_module("in_conv", ShortConv(*options.in_conv, generator));
  if (options.out_conv)
    out_conv_ = register_module("out_conv", ShortConv(*options.out_conv, generator));
}

at::Tensor SelfAttentionImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  const auto qkv = convolve(in_conv_, in_proj_->forward(x), x, lengths).chunk(3, -1);
  const at::Tensor y = local_attention(
      qkv[0],
      qkv[1],
      qkv[2],
      {.heads = options_.heads,
       .kernel_size = options_.kernel_size,
       .causal = options_.causal,
       .lengths = lengths,
       .dropout = options_.dropout},
      plan);
  return convolve(out_conv_, out_proj_->forward(y), y, lengths);
}

namespace {

/// A buffer for `room` places that begins with what is in use.
at::Tensor with_room(const AttentionState& state, const at::Tensor& buffer, int64_t room) {
  at::Tensor larger =
      at::empty({buffer.size(0), buffer.size(1), room, buffer.size(3)}, buffer.options());
  larger.narrow(2, 0, state.kept()).copy_(state.in_use(buffer));
  return larger;
}

/// [T', t]: which of the `seen` kept keys the last `steps` queries see; query i
/// stands at place seen - steps + i. window 0: all before it.
at::Tensor step_mask(int64_t steps, int64_t seen, int64_t window, at::Device device) {
  const at::Tensor distance = at::arange(seen, device).unsqueeze(0) -
      at::arange(seen - steps, seen, device).unsqueeze(1);  // key - query
  const int64_t reach = window > 0 ? window : seen;
  return distance.le(0).logical_and(distance.gt(-reach));
}

}  // namespace

at::Tensor AttentionState::in_use(const at::Tensor& buffer) const {
  return buffer.narrow(2, begin, kept());
}

void AttentionState::append(const at::Tensor& new_keys, const at::Tensor& new_values) {
  const int64_t added = new_keys.size(2);
  if (end + added > keys.size(2)) {
    const int64_t room = 2 * (kept() + added);
    keys = with_room(*this, keys, room);
    values = with_room(*this, values, room);
    end = kept();
    begin = 0;
  }
  keys.narrow(2, end, added).copy_(new_keys);
  values.narrow(2, end, added).copy_(new_values);
  end += added;
}

void AttentionState::reorder(const at::Tensor& parents) {
  keys = at::index_select(in_use(keys), 0, parents);
  values = at::index_select(in_use(values), 0, parents);
  end = kept();
  begin = 0;
  in_conv.reorder(parents);
  out_conv.reorder(parents);
}

at::Tensor SelfAttentionImpl::step(
    const at::Tensor& x, AttentionState& state, const StepPosition& /*position*/) const {
  const auto qkv = convolve_step(in_conv_, in_proj_->forward(x), x, state.in_conv).chunk(3, -1);
  state.append(split_heads(qkv[1], options_.heads), split_heads(qkv[2], options_.heads));
  const int64_t window = options_.kernel_size;
  const int64_t steps = x.size(1);
  std::optional<at::Tensor> mask;
  if (steps > 1)  // a single query sees all that is kept
    mask = step_mask(steps, state.kept(), window, x.device());
  DropoutPlan evaluation;
  const at::Tensor y = join_heads(attend(
      split_heads(qkv[0], options_.heads),
      state.in_use(state.keys),
      state.in_use(state.values),
      mask,
      /*dropout=*/0,
      evaluation));
  if (window > 0)
    state.begin = std::max(state.begin, state.end - (window - 1));
  return convolve_step(out_conv_, out_proj_->forward(y), y, state.out_conv);
}

AttentionState SelfAttentionImpl::initial_state(int64_t rows) const {
  const at::Tensor empty = at::empty(
      {rows, options_.heads, 0, options_.channels / options_.heads}, in_proj_->weight.options());
  return {
      .keys = empty,
      .values = empty,
      .in_conv = past_of(in_conv_, rows),
      .out_conv = past_of(out_conv_, rows)};
}

CrossAttentionImpl::CrossAttentionImpl(
    const CrossAttentionOptions& options, const InitGenerator& generator)
    : options_(options) {
  const int64_t channels = options.channels;
  query_proj_ = register_module(
      "query_proj", Linear(channels, channels, generator, /*blocks=*/1, kProjectionGain));
  query_proj_->draw_bias_by_fan_in(generator);
  key_value_proj_ = register_module(
      "key_value_proj", Linear(channels, 2 * channels, generator, /*blocks=*/2, kProjectionGain));
  key_value_proj_->draw_bias_by_fan_in(generator);
  out_proj_ = register_module("out_proj", Linear(channels, channels, generator));
}

CrossMemory CrossAttentionImpl::memory(
    const at::Tensor& states, const std::optional<at::Tensor>& lengths) const {
  const auto kv = key_value_proj_->forward(states).chunk(2, -1);
  CrossMemory memory{split_heads(kv[0], options_.heads), split_heads(kv[1], options_.heads), {}};
  if (lengths) {
    memory.mask = length_mask(*lengths, states.size(1)).unsqueeze(1).unsqueeze(1);
  }
  return memory;
}

namespace {

/// x [N, T, C] -> [M, W * T, C].
at::Tensor to_places(const at::Tensor& x, const CrossMemory& memory) {
  const RowPlaces& rows = memory.rows;
  const at::Tensor placed = rows.row_at.defined() ? at::index_select(x, 0, rows.row_at) : x;
  return placed.view({memory.keys.size(0), rows.width * x.size(1), x.size(2)});
}

/// y [M, W * T, C] -> [N, T, C].
at::Tensor from_places(const at::Tensor& y, int64_t steps, const RowPlaces& rows) {
  const at::Tensor placed = y.view({y.size(0) * rows.width, steps, y.size(2)});
  return rows.place_of.defined() ? at::index_select(placed, 0, rows.place_of) : placed;
}

}  // namespace

RowPlaces place_rows(std::span<const int32_t> sentence_of_row, int64_t sentences) {
  std::vector<int64_t> count(static_cast<size_t>(sentences), 0);
  std::vector<int64_t> turns;  // how many rows of its sentence came before
  for (const int32_t sentence : sentence_of_row)
    turns.push_back(count[static_cast<size_t>(sentence)]++);
  RowPlaces places;
  for (const int64_t rows : count)
    places.width = std::max(places.width, rows);
  std::vector<int64_t> row_at(static_cast<size_t>(sentences * places.width), 0);
  std::vector<int64_t> place_of;
  for (size_t row = 0; row < turns.size(); ++row) {
    const int64_t place = sentence_of_row[row] * places.width + turns[row];
    place_of.push_back(place);
    row_at[static_cast<size_t>(place)] = static_cast<int64_t>(row);
  }
  // As beam search has them: in the order of the sentences, and as many each.
  if (row_at.size() == place_of.size() && std::is_sorted(place_of.begin(), place_of.end()))
    return places;
  places.row_at = at::tensor(row_at, at::kLong);
  places.place_of = at::tensor(place_of, at::kLong);
  return places;
}

void CrossMemory::keep(const at::Tensor& sentences) {
  keys = at::index_select(keys, 0, sentences);
  values = at::index_select(values, 0, sentences);
  if (mask)
    mask = at::index_select(*mask, 0, sentences);
}

at::Tensor CrossAttentionImpl::forward(
    const at::Tensor& x, const CrossMemory& memory, DropoutPlan& plan, HeadLook* look) const {
  const at::Tensor query =  // [M, H, W * T, R]
      split_heads(to_places(query_proj_->forward(x), memory), options_.heads);
  if (look != nullptr)
    look->log_shares = log_probabilities_of(
        query.select(1, look->head), memory.keys.select(1, look->head), memory.mask);
  const at::Tensor y =
      join_heads(attend(query, memory.keys, memory.values, memory.mask, options_.dropout, plan));
  return out_proj_->forward(from_places(y, x.size(1), memory.rows));
}

at::Tensor CrossAttentionImpl::probabilities(const at::Tensor& x, const CrossMemory& memory) const {
  return probabilities_of(
      split_heads(query_proj_->forward(x), options_.heads), memory.keys, memory.mask);
}

}  // namespace seqconv::internal
