#include "text/corpus/batch.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

/// Lengths with </s>, [B], and the longest of them.
std::vector<int64_t> row_lengths(const Rows& rows, int64_t& longest) {
  std::vector<int64_t> lengths;
  lengths.reserve(rows.size());
  longest = 0;
  for (const auto& row : rows) {
    lengths.push_back(static_cast<int64_t>(row.size()) + 1);
    longest = std::max(longest, lengths.back());
  }
  return lengths;
}

}  // namespace

Batch make_batch(
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets) {
  SEQCONV_CHECK(
      targets.empty() || targets.size() == sources.size(),
      "a batch needs as many targets as sources or none, but got ",
      targets.size(),
      " for ",
      sources.size());
  Batch batch;
  batch.rows = static_cast<int64_t>(sources.size());
  batch.source_lengths = row_lengths(sources, batch.source_steps);
  batch.target_lengths = row_lengths(targets, batch.target_steps);
  const auto steps = static_cast<size_t>(batch.source_steps);
  batch.source.assign(sources.size() * steps, kPadId);  // [B, S]
  for (size_t b = 0; b < sources.size(); ++b) {
    auto at = batch.source.begin() + static_cast<int64_t>(b * steps);
    *std::copy(sources[b].begin(), sources[b].end(), at) = kEndId;
    batch.pairs.push_back(static_cast<int64_t>(b));
  }
  const auto target_steps = static_cast<size_t>(batch.target_steps);
  batch.target_in.assign(targets.size() * target_steps,
                         kPadId);      // [B, T]
  batch.target_out = batch.target_in;  // [B, T]
  for (size_t b = 0; b < targets.size(); ++b) {
    const auto row = static_cast<int64_t>(b * target_steps);
    auto in = batch.target_in.begin() + row;
    *in = kEndId;
    std::copy(targets[b].begin(), targets[b].end(), in + 1);
    auto out = batch.target_out.begin() + row;
    *std::copy(targets[b].begin(), targets[b].end(), out) = kEndId;
    batch.target_tokens += batch.target_lengths[b];
  }
  return batch;
}

Batch make_stream_batch(const std::vector<std::span<const int32_t>>& pieces) {
  Batch batch;
  batch.rows = std::ssize(pieces);
  for (const auto& ids : pieces) {
    SEQCONV_CHECK(ids.size() >= 2, "a piece of a text needs 2 ids at least, but has ", ids.size());
    batch.target_lengths.push_back(std::ssize(ids) - 1);
    batch.target_tokens += batch.target_lengths.back();
    batch.target_steps = std::max(batch.target_steps, batch.target_lengths.back());
  }
  batch.target_in.assign(static_cast<size_t>(batch.rows * batch.target_steps),
                         kPadId);      // [B, T]
  batch.target_out = batch.target_in;  // [B, T]
  int64_t row = 0;
  for (const auto& ids : pieces) {
    std::copy(ids.begin(), ids.end() - 1, batch.target_in.begin() + row);
    std::copy(ids.begin() + 1, ids.end(), batch.target_out.begin() + row);
    row += batch.target_steps;
  }
  return batch;
}

Batch cut_rows(const Batch& batch, int64_t first, int64_t count) {
  SEQCONV_CHECK(
      first >= 0 && count >= 0 && first + count <= batch.rows,
      "rows must be among the ",
      batch.rows,
      " of a batch, but got ",
      count,
      " from ",
      first);
  Batch part = batch;
  part.rows = count;
  const auto cut = [&](std::vector<int64_t>& values, int64_t steps) {
    if (values.empty())
      return;
    values.erase(values.begin() + (first + count) * steps, values.end());
    values.erase(values.begin(), values.begin() + first * steps);
  };
  cut(part.source, batch.source_steps);
  cut(part.source_lengths, 1);
  cut(part.target_in, batch.target_steps);
  cut(part.target_out, batch.target_steps);
  cut(part.target_lengths, 1);
  cut(part.pairs, 1);
  std::erase_if(part.links, [&](const BatchLink& link) {
    return link.row < first || link.row >= first + count;
  });
  for (BatchLink& link : part.links)
    link.row -= first;
  part.target_tokens =
      std::accumulate(part.target_lengths.begin(), part.target_lengths.end(), int64_t{0});
  return part;
}

}  // namespace seqconv::internal
