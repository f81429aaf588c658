#pragma once

#include <cstdint>

#include "kernels/conv.h"

/// One position at a time, float32: what it sees are rows that lie anywhere in
/// memory, so that hypotheses share the past that they have in common. Every
/// result depends on its own arguments alone, bit for bit.
namespace seqconv::internal::kernels {

/// Rows of C = H * R channels, oldest first.
struct SeenRows {
  const float* const* rows = nullptr;
  int64_t count = 0;
};

/// Logits w [count, K] -> taps, in place; those of a softmax stay logits, as
/// ConvForward takes them.
void normalize_taps(Normalization normalization, float* w, int64_t count, int64_t kernel_size);

/// Makes taps of the logits of H kernels of K taps.
struct TapMaker {
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  int64_t heads = 1;
  int64_t kernel_size = 1;

  /// Elements from the taps of one head to those of the next.
  int64_t stride() const;
  /// Elements of memory for the taps of all heads.
  int64_t size() const;
  /// logits [H, K] -> taps [H, stride()]. `seen` inputs exist up to this one:
  /// with renormalize_edges the first K - seen taps get no weight.
  void make(const float* logits, int64_t seen, float* taps) const;
};

/// y[c] = bias[c] + sum over j of taps[h][j] * rows[j][c] for the channels c of
/// head h.
struct WeightedRows {
  int64_t heads = 1;
  int64_t channels = 0;         ///< C
  const float* taps = nullptr;  ///< of the first head and row
  int64_t tap_stride = 0;       ///< from one head to the next
  const float* bias = nullptr;  ///< [C] or null
};
void weighted_rows(const WeightedRows& args, const SeenRows& x, float* y);

/// Heads of fewer channels are better weighed with taps that lie by channel, if
/// these need not be made for every row.
inline constexpr int64_t kNarrowHead = 16;

/// y[c] = bias[c] + sum over j of taps[j][c] * rows[j][c], the bits that
/// weighted_rows() gives.
struct WeightedChannels {
  int64_t channels = 0;         ///< C
  const float* taps = nullptr;  ///< [count, C]
  const float* bias = nullptr;  ///< [C] or null
};
void weighted_channels(const WeightedChannels& args, const SeenRows& x, float* y);

/// Scaled dot-product attention of one query [C] to keys and values [C] of
/// `count` positions, at least one; y [C]. scores: scratch, [H, count].
struct AttentionRow {
  int64_t heads = 1;
  int64_t channels = 0;  ///< C
  const float* query = nullptr;
  const float* const* keys = nullptr;
  const float* const* values = nullptr;
  int64_t count = 0;
  float* scores = nullptr;
};
void attend(const AttentionRow& args, float* y);

/// Positions of keys lie in steps of so many.
inline constexpr int64_t kSourceStep = 16;

/// Holds what many rows look at: keys lie transposed, so that the scores of
/// neighbouring positions are one vector.
struct SeenSource {
  int64_t heads = 1;
  int64_t channels = 0;           ///< C
  int64_t count = 0;              ///< positions, at least one
  int64_t stride = 0;             ///< a multiple of kSourceStep, >= count
  const float* keys = nullptr;    ///< [C, stride], finite behind the last
  const float* values = nullptr;  ///< [count, C]
  int64_t value_stride = 0;       ///< from a position to the next
};

/// Scaled dot-product attention of queries [rows, C] to a source; y [rows, C].
/// scores: scratch, [kSourceRowsAtMost, stride]. A row has the same bits alone.
inline constexpr int64_t kSourceRowsAtMost = 4;
void attend_source(
    const SeenSource& source, int64_t rows, const float* queries, float* scores, float* y);

/// y = x * sigmoid(gates[0, C)) + average * sigmoid(gates[C, 2C)): the gate of
/// average attention. Any may be y.
struct AverageGate {
  const float* x = nullptr;
  const float* average = nullptr;
  const float* gates = nullptr;
};
void average_gate(const AverageGate& args, int64_t channels, float* y);

/// y[i] = sigmoid(x[i]).
void sigmoid_row(const float* x, int64_t count, float* y);

/// x [count] -> x - log(sum of exp(x)), in place. The sum of all in float64.
void log_softmax_row(float* x, int64_t count);

/// The terms that log_softmax_row takes from each x, in this order.
struct SoftmaxTerms {
  float maximum = 0;
  float log_sum = 0;
};

/// Those of a row that is left as it is. maxima [count / kMaximaBlock]: the
/// largest x of each whole block, NaN left out.
inline constexpr int64_t kMaximaBlock = 64;
SoftmaxTerms softmax_terms(const float* x, int64_t count, float* maxima);

}  // namespace seqconv::internal::kernels
