#pragma once

#include <vector>

#include "libtorch/ops/short_conv_ops.h"

namespace seqconv::ops {

/// Says where the sequences of checked arguments lie, with values that are checked
/// too. Sequences that seq_idx marks become packed ones, padding as sequences of which
/// nothing is real.
class SequenceValues {
 public:
  explicit SequenceValues(const ShortConvArguments& args);

  int64_t count() const { return count_; }
  int64_t steps() const { return steps_; }
  const int64_t* lengths() const { return lengths_.empty() ? nullptr : lengths_.data(); }
  const int64_t* offsets() const { return offsets_.empty() ? nullptr : offsets_.data(); }

  /// The initial state of every sequence: as it is but for seq_idx, where that of a
  /// row is its first sequence's, and others begin with zeros.
  at::Tensor spread_state(const at::Tensor& initial_state) const;
  /// The gradient of an initial state from that of spread_state().
  at::Tensor gather_state(const at::Tensor& gradient) const;

 private:
  void read_lengths(const ShortConvArguments& args);
  void read_offsets(const ShortConvArguments& args);
  void read_numbers(const ShortConvArguments& args);

  int64_t count_, steps_;
  std::vector<int64_t> lengths_, offsets_;
  at::Tensor firsts_;  ///< of seq_idx: numbers of the rows' first sequences
};

}  // namespace seqconv::ops
