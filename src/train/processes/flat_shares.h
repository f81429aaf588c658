#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "libtorch/nn/flat_parameters.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// Tells where the shares of `size` processes end in a flat buffer of `count`
/// elements: as even as multiples of Communicator::kShareUnit can be. Some
/// shares of a small buffer are empty.
std::vector<int64_t> share_ends(int64_t count, int64_t size);

/// Which part of the optimiser's state, and of what else an update changes
/// element by element, a process keeps: its share where the buffers are cut
/// among the processes, all of it otherwise. All that is said here of flat
/// buffers holds for contiguous float32 tensors [P].
class FlatShares {
 public:
  FlatShares() = default;  ///< not cut
  /// Buffers as long as those of `parameters`. They are cut if it is wanted and
  /// there is more than one process.
  FlatShares(
      std::shared_ptr<Communicator> processes, const FlatParameters& parameters, bool wanted);

  /// Then all processes call share() and collect() together.
  bool is_cut() const { return !ends_.empty(); }
  /// Tells whether collect() gives this process anything.
  bool collects() const { return !is_cut() || processes_->is_first(); }

  /// The first element of this process's share.
  int64_t begin() const;
  /// This process's share of a flat buffer: a view.
  at::Tensor own(const at::Tensor& whole) const;
  /// Gives all processes what the others have in their shares of `whole`.
  void share(const at::Tensor& whole) const;
  /// The flat buffer of which each process has `own`, in the first one;
  /// undefined in the others. Itself where nothing is cut.
  at::Tensor collect(const at::Tensor& own) const;

 private:
  std::shared_ptr<Communicator> processes_;
  std::vector<int64_t> ends_;  // empty where nothing is cut
};

}  // namespace seqconv::internal
