#pragma once

#include <memory>
#include <string>

#include "model/layers.h"
#include "runtime/history.h"
#include "runtime/probe.h"
#include "runtime/sequences.h"
#include "runtime/short_conv.h"
#include "runtime/weights.h"
#include "runtime/workspace.h"

/// Mixers, which mix information along time in a layer, as the runtime runs
/// them.
namespace seqconv::internal::runtime {

/// A mixer with its past in one decoder.
class MixerSteps {
 public:
  virtual ~MixerSteps() = default;
  /// The next steps' rows [T', N, C].
  virtual void run(const Ancestry& ancestry, const LayerRows& rows, Workspace& space) = 0;
};

class Mixer {
 public:
  virtual ~Mixer() = default;
  /// Whole sequences, [rows, C].
  virtual void forward(
      const Sequences& sequences, const LayerRows& rows, Workspace& space) const = 0;
  /// Tells how it weighs the positions of one sequence x [steps, C].
  virtual PositionWeights probe(int64_t steps, const float* x, Workspace& space) const {
    return {};
  }
  /// The number of steps that it looks back.
  virtual int64_t reach() const = 0;
  /// A past of no inputs; it refers to this mixer, and has its memory from
  /// `kept`, which outlives it.
  virtual std::unique_ptr<MixerSteps> start(Workspace::Frame& kept) const = 0;
};

/// The operator between the linear maps of a convolution block.
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// h [rows, D], what kernels are predicted from [rows, D or C] -> y [rows,
  /// D].
  virtual void forward(
      const Sequences& sequences,
      const float* h,
      const float* query,
      float* y,
      Workspace& space) const = 0;
  /// Tells how it weighs the positions of one sequence, h and query as above.
  virtual PositionWeights probe(
      int64_t steps, const float* h, const float* query, Workspace& space) const = 0;
  virtual int64_t reach() const = 0;
  /// The rows of the next steps, whose h are in `log` or go there.
  virtual void step(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      const float* query,
      float* y,
      Workspace& space) const = 0;
};

/// The mixer of any kind.
std::unique_ptr<Mixer> make_mixer(
    const MixerOptions& options, const Weights& weights, const std::string& name);

}  // namespace seqconv::internal::runtime
