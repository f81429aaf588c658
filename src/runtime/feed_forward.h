#pragma once

#include <string>

#include "model/layers.h"
#include "runtime/short_conv.h"
#include "runtime/weights.h"
#include "runtime/workspace.h"

namespace seqconv::internal::runtime {

/// The past of a network's short convolutions, where there are any.
struct FeedForwardSteps {
  std::optional<RowLog> conv1;
  std::optional<RowLog> conv2;
};

/// Two linear maps with an activation between them; where a layer has short
/// convolutions behind its linear maps, one behind each.
class FeedForward {
 public:
  FeedForward(
      const Weights& weights,
      const std::string& name,
      kernels::Activation activation,
      const LayerShortConv& conv = {})
      : fc1_(weights.linear(name + "fc1")),
        fc2_(weights.linear(name + "fc2")),
        activation_(activation),
        conv1_(find_short_conv(conv, fc1_.weight.outputs(), weights, name + "conv1")),
        conv2_(find_short_conv(conv, fc2_.weight.outputs(), weights, name + "conv2")) {}

  FeedForwardSteps start(Workspace::Frame& kept) const {
    return {runtime::start(conv1_.get(), kept), runtime::start(conv2_.get(), kept)};
  }

  /// Without short convolutions. pass: rows, x and y of C channels, and what the second
  /// map ends with.
  void run(kernels::LinearPass pass, Workspace& space) const {
    Workspace::Frame frame(space);
    float* const hidden = frame.take(pass.rows * fc1_.weight.outputs());
    fc1_.run({.rows = pass.rows, .x = pass.x, .end = end(), .y = hidden});
    pass.x = hidden;
    fc2_.run(pass);
  }

  /// y = residual + network(x); past: of steps.
  void run(
      const RowOrder& order, FeedForwardSteps* past, const LayerRows& rows, Workspace& space) const;

 private:
  kernels::LinearEnd end() const {
    return activation_ == kernels::Activation::kSwish ? kernels::LinearEnd::kSwish
                                                      : kernels::LinearEnd::kRelu;
  }

  Linear fc1_;
  Linear fc2_;
  kernels::Activation activation_;
  std::unique_ptr<const ShortConv> conv1_;
  std::unique_ptr<const ShortConv> conv2_;
};

}  // namespace seqconv::internal::runtime
