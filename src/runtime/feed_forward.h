#pragma once

#include <string>

#include "kernels/activation.h"
#include "runtime/weights.h"
#include "runtime/workspace.h"

namespace seqconv::internal::runtime {

/// Two linear maps with an activation between them.
class FeedForward {
 public:
  FeedForward(const Weights& weights, const std::string& name, kernels::Activation activation)
      : fc1_(weights.linear(name + "fc1")),
        fc2_(weights.linear(name + "fc2")),
        end_(
            activation == kernels::Activation::kSwish ? kernels::LinearEnd::kSwish
                                                      : kernels::LinearEnd::kRelu) {}

  /// pass: rows, x and y of C channels, and what the second map ends with.
  void run(kernels::LinearPass pass, Workspace& space) const {
    Workspace::Frame frame(space);
    float* const hidden = frame.take(pass.rows * fc1_.weight.outputs());
    fc1_.run({.rows = pass.rows, .x = pass.x, .end = end_, .y = hidden});
    pass.x = hidden;
    fc2_.run(pass);
  }

 private:
  Linear fc1_;
  Linear fc2_;
  kernels::LinearEnd end_;
};

}  // namespace seqconv::internal::runtime
