#include "runtime/cross_attention.h"

#include <algorithm>

#include "kernels/decoding.h"
#include "runtime/layer_probe.h"

namespace seqconv::internal::runtime {

CrossAttention::CrossAttention(
    int64_t heads, int64_t dim, const Weights& weights, const std::string& name)
    : heads_(heads),
      dim_(dim),
      query_(weights.linear(name + "query_proj")),
      key_value_(weights.linear(name + "key_value_proj")),
      out_(weights.linear(name + "out_proj")) {}

namespace {

/// From a channel's keys to the next one's.
int64_t stride(int64_t positions) {
  constexpr int64_t kStep = kernels::kSourceStep;
  return (positions + kStep - 1) / kStep * kStep;
}

}  // namespace

SourceMemory CrossAttention::memory(
    const Sequences& sources, const float* states, Workspace::Frame& kept, Workspace& space) const {
  const int64_t count = sources.rows();
  Workspace::Frame frame(space);
  float* const both = frame.take(count * 2 * dim_);
  key_value_.run({.rows = count, .x = states, .y = both});
  SourceMemory memory;
  int64_t keys = 0;
  for (int64_t i = 0; i < sources.count(); ++i) {
    memory.first_key.push_back(keys);
    keys += dim_ * stride(sources.length(i));
  }
  memory.keys = kept.take(keys);
  memory.values = kept.take(count * dim_);
  for (int64_t i = 0; i < sources.count(); ++i) {
    const int64_t pitch = stride(sources.length(i));
    float* const own = memory.keys + memory.first_key[static_cast<size_t>(i)];
    for (int64_t c = 0; c < dim_; ++c)
      std::fill(own + c * pitch + sources.length(i), own + (c + 1) * pitch, 0.0F);
    for (int64_t s = 0; s < sources.length(i); ++s) {
      const int64_t row = sources.first(i) + s;
      const float* const from = both + row * 2 * dim_;
      for (int64_t c = 0; c < dim_; ++c)
        own[c * pitch + s] = from[c];
      std::copy_n(from + dim_, dim_, memory.values + row * dim_);
    }
  }
  return memory;
}

kernels::SeenSource CrossAttention::source(
    const Sequences& sources, const SourceMemory& memory, int64_t i) const {
  return {
      .heads = heads_,
      .channels = dim_,
      .count = sources.length(i),
      .stride = stride(sources.length(i)),
      .keys = memory.keys + memory.first_key[static_cast<size_t>(i)],
      .values = memory.values + sources.first(i) * dim_,
      .value_stride = dim_};
}

void CrossAttention::run(
    const Sequences& sources,
    const SourceMemory& memory,
    std::span<const int32_t> sentence_of_row,
    const LayerRows& rows,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const auto count = static_cast<int64_t>(sentence_of_row.size());
  float* const query = frame.take(count * dim_);
  float* const y = frame.take(count * dim_);
  query_.run({.rows = count, .x = rows.x, .y = query});
  int64_t longest = 0;
  for (const int32_t i : sentence_of_row)
    longest = std::max(longest, stride(sources.length(i)));
  float* const scores = frame.take(kernels::kSourceRowsAtMost * longest);
  // Neighbours mostly look at one sentence.
  for (int64_t r = 0, end = 0; r < count; r = end) {
    const int32_t i = sentence_of_row[static_cast<size_t>(r)];
    while (end < count && sentence_of_row[static_cast<size_t>(end)] == i)
      ++end;
    kernels::attend_source(
        source(sources, memory, i), end - r, query + r * dim_, scores, y + r * dim_);
  }
  out_.run({.rows = count, .x = y, .residual = rows.residual, .y = rows.y});
}

void CrossAttention::weigh(
    const Sequences& source,
    const SourceMemory& memory,
    int64_t head,
    const float* query,
    std::span<float> weights) const {
  const int64_t R = dim_ / heads_, pitch = stride(source.length(0));
  const float* const keys = memory.keys + head * R * pitch;
  probe_attention(R, query, weights, [&](int64_t s, int64_t c) { return keys[c * pitch + s]; });
}

PositionWeights CrossAttention::probe(
    const Sequences& source, const SourceMemory& memory, int64_t steps, const float* x) const {
  const int64_t S = source.length(0), R = dim_ / heads_;
  std::vector<float> queries(static_cast<size_t>(steps * dim_));
  query_.run({.rows = steps, .x = x, .y = queries.data()});
  PositionWeights found{WeightForm::kPositions, heads_, S};
  found.values.resize(static_cast<size_t>(steps * heads_ * S));
  for (int64_t row = 0; row < steps * heads_; ++row)
    weigh(
        source,
        memory,
        row % heads_,
        queries.data() + row * R,
        std::span(found.values).subspan(static_cast<size_t>(row * S), static_cast<size_t>(S)));
  return found;
}

std::vector<SourceShares> CrossAttention::shares(
    const Sequences& source,
    const SourceMemory& memory,
    const Sequences& sequences,
    std::span<const int64_t> heads,
    const float* x,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const int64_t rows = sequences.rows(), S = source.length(0), R = dim_ / heads_;
  float* const queries = frame.take(rows * dim_);
  query_.run({.rows = rows, .x = x, .y = queries});
  std::vector<SourceShares> found;
  std::vector<float> of_head(static_cast<size_t>(S));
  for (int64_t i = 0; i < sequences.count(); ++i) {
    SourceShares& own = found.emplace_back(SourceShares{S, {}});
    own.values.resize(static_cast<size_t>(sequences.length(i) * S));
    for (int64_t t = 0; t < sequences.length(i); ++t)
      for (const int64_t h : heads) {
        weigh(source, memory, h, queries + (sequences.first(i) + t) * dim_ + h * R, of_head);
        for (int64_t s = 0; s < S; ++s)
          own.values[static_cast<size_t>(t * S + s)] +=
              of_head[static_cast<size_t>(s)] / static_cast<float>(heads.size());
      }
  }
  return found;
}

}  // namespace seqconv::internal::runtime
