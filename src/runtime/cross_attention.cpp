#include "cross_attention.h"

#include <algorithm>

#include "seqconv/kernels/decoding.h"

namespace seqconv::runtime {

CrossAttention::CrossAttention(
    int64_t heads,
    int64_t dim,
    const Weights& weights,
    const std::string& name)
    : heads_(heads),
      dim_(dim),
      query_(weights.linear(name + "query_proj")),
      key_value_(weights.linear(name + "key_value_proj")),
      out_(weights.linear(name + "out_proj")) {}

SourceMemory CrossAttention::memory(
    const Sequences& sources,
    const float* states) const {
  const int64_t count = sources.rows();
  SourceMemory memory;
  memory.rows.resize(static_cast<size_t>(count * 2 * dim_));
  key_value_.run({.rows = count, .x = states, .y = memory.rows.data()});
  for (int64_t r = 0; r < count; ++r) {
    memory.keys.push_back(memory.rows.data() + r * 2 * dim_);
    memory.values.push_back(memory.keys.back() + dim_);
  }
  return memory;
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
    longest = std::max(longest, sources.length(i));
  float* const scores = frame.take(heads_ * longest);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t i = sentence_of_row[static_cast<size_t>(r)];
    kernels::attend(
        {.heads = heads_,
         .channels = dim_,
         .query = query + r * dim_,
         .keys = memory.keys.data() + sources.first(i),
         .values = memory.values.data() + sources.first(i),
         .count = sources.length(i),
         .scores = scores},
        y + r * dim_);
  }
  out_.run({.rows = count, .x = y, .residual = rows.residual, .y = rows.y});
}

}  // namespace seqconv::runtime
