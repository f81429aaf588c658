#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/layers.h"
#include "runtime/history.h"
#include "runtime/sequences.h"
#include "runtime/weights.h"
#include "runtime/workspace.h"

namespace seqconv::internal::runtime {

/// Rows of C channels that pass through a part of a layer: y = residual +
/// part(x). Nothing overlaps, but that y may be the residual.
struct LayerRows {
  const float* x = nullptr;
  const float* residual = nullptr;
  float* y = nullptr;
};

/// Says which rows come before which: those of whole sequences, or of the next
/// steps [T', N].
struct RowOrder {
  const Sequences* sequences = nullptr;
  const Ancestry* ancestry = nullptr;

  int64_t rows() const {
    return sequences != nullptr ? sequences->rows() : ancestry->steps() * ancestry->rows();
  }
};

/// Short convolution of static taps, and of taps that linear maps predict for every
/// row (semantics.md 1.7).
class ShortConv {
 public:
  ShortConv(
      const LayerShortConv& options,
      int64_t channels,
      const Weights& weights,
      const std::string& name);

  int64_t channels() const { return channels_; }
  /// A past of no inputs, for steps.
  RowLog start(Workspace::Frame& kept) const { return {channels_, options_.kernel_size - 1, kept}; }

  /// x [rows, C], of which taps are predicted [rows, Q] -> y [rows, C]. log: the past
  /// of steps. y is neither of them.
  void run(
      const RowOrder& order,
      RowLog* log,
      const float* x,
      const float* query,
      float* y,
      Workspace& space) const;

 private:
  void run_sequences(
      const Sequences& sequences,
      const float* x,
      const float* query,
      float* y,
      Workspace& space) const;
  void run_steps(
      const Ancestry& ancestry,
      RowLog& log,
      const float* x,
      const float* query,
      float* y,
      Workspace& space) const;
  /// Sequences that begin at `offsets` rows of x, or a single one behind the K-1 rows
  /// `past`.
  void convolve(
      std::span<const int64_t> offsets,
      const float* past,
      const float* x,
      const float* query,
      float* y,
      Workspace& space) const;

  /// Taps [rows, H, K] of query [rows, Q].
  void predict(int64_t rows, const float* query, float* taps, Workspace& space) const;
  /// The most rows whose predicted taps exist at a time.
  int64_t rows_at_a_time() const;
  /// Q; 0 where nothing is predicted.
  int64_t query_channels() const;
  /// Adds predicted taps [H, K] to the static ones -> taps [K, C].
  void add_taps(const float* predicted, float* taps) const;
  /// Does what comes behind the sums [C]: y [C] of input x [C].
  void end_row(const float* sums, const float* x, float* y) const;
  const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); }

  LayerShortConv options_;
  int64_t channels_;                    // C
  int64_t groups_;                      // G
  int64_t heads_;                       // H, 0: nothing is predicted
  std::vector<float> taps_;             // [G, K]
  std::vector<float> taps_by_channel_;  // [K, C]
  std::vector<float> bias_;             // [C] or none
  std::optional<Linear> narrow_;        // Q -> P
  std::optional<Linear> predict_;       // Q or P -> H*K
};

/// The short convolution `name`; null where the file has none.
std::unique_ptr<const ShortConv> find_short_conv(
    const LayerShortConv& options,
    int64_t channels,
    const Weights& weights,
    const std::string& name);

/// The past of a short convolution that may be null.
std::optional<RowLog> start(const ShortConv* conv, Workspace::Frame& kept);

/// A short convolution, or null, over rows in some order, with its past where these are
/// steps.
struct ShortConvRun {
  const ShortConv* conv;
  RowOrder order;
  std::optional<RowLog>* log = nullptr;

  /// x [rows, C] behind it, in memory of `frame`; x itself where there is none.
  const float* operator()(
      const float* x, const float* query, Workspace::Frame& frame, Workspace& space) const;
};

/// y = x * sigmoid(x), of `count` numbers; y is not x.
void silu(int64_t count, const float* x, float* y);
/// y = x + residual, of `count` numbers. Any may be y.
void add_residual(int64_t count, const float* x, const float* residual, float* y);

}  // namespace seqconv::internal::runtime
