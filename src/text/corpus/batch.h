#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal {

/// Two tokens of a row that translate each other, by their places without padding.
struct BatchLink {
  int64_t row = 0;
  int64_t source = 0;
  int64_t target = 0;

  bool operator==(const BatchLink&) const = default;
};

/// One batch of sentence pairs or of a language model's samples, padded on the
/// right with <pad>. Letters as in docs/shapes.md: B rows, S source steps, T
/// target steps. Samples of a language model have no source: S = 0, nothing in
/// `source` and `source_lengths`, and a row of target_in is target_out one
/// token earlier in the text; their ends need not be </s>.
struct Batch {
  int64_t rows = 0;                     ///< B
  int64_t source_steps = 0;             ///< S
  int64_t target_steps = 0;             ///< T
  std::vector<int64_t> source;          ///< [B, S], each row ends in </s>
  std::vector<int64_t> source_lengths;  ///< [B], </s> counted
  std::vector<int64_t> target_in;       ///< [B, T], </s> then the target
  std::vector<int64_t> target_out;      ///< [B, T], the target then </s>
  std::vector<int64_t> target_lengths;  ///< [B], </s> counted
  int64_t target_tokens = 0;            ///< sum of target_lengths
  std::vector<int64_t> pairs;           ///< [B], sample in the corpus
  std::vector<BatchLink> links;         ///< by row; none unless they were asked for
};

/// Pads ids (without </s>) into a batch. `targets` may be empty: then only the
/// source side is filled. `pairs` are the positions in `sources`.
Batch make_batch(
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets);

/// Pads pieces of a text into a language model's batch. Each has one id more
/// than it predicts: all but its last are read, all but its first predicted.
Batch make_stream_batch(const std::vector<std::span<const int32_t>>& pieces);

/// Rows first ... first + count - 1 of a batch, as long as they were there.
Batch cut_rows(const Batch& batch, int64_t first, int64_t count);

}  // namespace seqconv::internal
