#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace seqconv {

/// The exponential moving average of a run's parameters, or none where the
/// decay is 0. After n updates it is the mean of the parameters after each of
/// them, which weigh decay^(n - 1), ..., decay, 1: those that the run began
/// with are not in it (semantics.md 3.3).
class ParameterAverage {
 public:
  /// values [P] float32, the parameters. Before the first update the average is
  /// what they are now.
  ParameterAverage(double decay, const at::Tensor& values);

  bool is_kept() const { return average_.defined(); }
  double decay() const { return decay_; }

  /// [P] float32, as a training state keeps it; writing into it restores it.
  /// Undefined where none is kept.
  const at::Tensor& values() const { return average_; }

  /// Takes in the parameters that update number `updates`, from 1, has made.
  void add(int64_t updates);

  /// The same for any device, where `keep` [] is true, else nothing; updates []
  /// float64. Neither is read on the host.
  void add_where(const at::Tensor& keep, const at::Tensor& updates);

  /// While one lives, the parameters are the average, and values() what the
  /// parameters were: the two have changed places.
  class InUse {
   public:
    explicit InUse(ParameterAverage& average);
    InUse(const InUse&) = delete;
    ~InUse() { end(); }
    /// Puts both back; once is enough.
    void end();

   private:
    ParameterAverage* average_;
  };

 private:
  void exchange();

  double decay_;
  at::Tensor values_;
  at::Tensor average_;
};

}  // namespace seqconv
