#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "train/processes/flat_shares.h"

namespace seqconv::internal {

/// The exponential moving average of a run's parameters, or none where the
/// decay is 0. After n updates it is the mean of the parameters after each of
/// them, which weigh decay^(n - 1), ..., decay, 1: those that the run began
/// with are not in it (semantics.md 3.3).
class ParameterAverage {
 public:
  /// values [P] float32, the parameters. Before the first update the average is
  /// what they are now.
  /// Each process keeps its share of it.
  ParameterAverage(double decay, const at::Tensor& values, FlatShares shares = {});

  bool is_kept() const { return average_.defined(); }
  double decay() const { return decay_; }

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

  double decay_;
  FlatShares shares_;
  at::Tensor all_values_;
  at::Tensor values_;   // this process's share of them
  at::Tensor average_;  // likewise
};

}  // namespace seqconv::internal
