#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "train/processes/flat_shares.h"

namespace seqconv::internal {

/// Says how far back an average of parameters reaches: one of both, or none.
struct AverageOptions {
  double decay = 0;  ///< in [0, 1): the parameters of update i of n weigh decay^(n - i)
  double share = 0;  ///< in [0, 1): over this share of the updates so far, the last ones

  bool is_kept() const { return decay > 0 || share > 0; }
  /// The weight of update n, from 1, in the mean of all n.
  double weight_of(int64_t n) const;
};

/// The moving average of a run's parameters, or none. After n updates it is the mean of the
/// parameters after each of them: those that the run began with are not in it (semantics.md
/// 3.3).
class ParameterAverage {
 public:
  /// values [P] float32, the parameters. Before the first update the average is
  /// what they are now.
  /// Each process keeps its share of it.
  ParameterAverage(AverageOptions options, const at::Tensor& values, FlatShares shares = {});

  bool is_kept() const { return average_.defined(); }
  const AverageOptions& options() const { return options_; }

  /// Whether being in use takes all processes.
  bool is_cut() const { return is_kept() && shares_.is_cut(); }

  /// This process's share of [P] float32, as a training state keeps it; writing
  /// into it restores it. Undefined where none is kept.
  const at::Tensor& values() const { return average_; }

  /// Takes in the parameters that update number `updates`, from 1, has made.
  void add(int64_t updates);

  /// The same for any device, where `keep` [] is true, else nothing; updates []
  /// float64. Neither is read on the host.
  void add_where(const at::Tensor& keep, const at::Tensor& updates);

  /// While one lives, the parameters are the average, and values() what the
  /// parameters were: the two have changed places. Where the average is cut,
  /// all processes begin and end together.
  class InUse {
   public:
    explicit InUse(ParameterAverage& average);
    InUse(const InUse&) = delete;
    /// Left by an exception, it gives the other processes nothing: they may be
    /// anywhere, and the run ends.
    ~InUse();
    /// Puts both back; once is enough.
    void end();

   private:
    ParameterAverage* average_;
  };

 private:
  void exchange();

  AverageOptions options_;
  FlatShares shares_;
  at::Tensor all_values_;
  at::Tensor values_;   // this process's share of them
  at::Tensor average_;  // likewise
};

}  // namespace seqconv::internal
