#pragma once

#include <cstdint>

namespace seqconv::internal {

/// The numbers of an optimiser's state besides its tensors: visited like
/// options.
struct OptimizerScalars {
  int64_t steps = 0;                  ///< made so far
  double previous_learning_rate = 0;  ///< of the last step, 0 before it

  template <class Visitor>
  void visit(Visitor& v) {
    v("steps", steps, "Steps made");
    v("previous_learning_rate", previous_learning_rate, "Of the last step");
  }
};

}  // namespace seqconv::internal
