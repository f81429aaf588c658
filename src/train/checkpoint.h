#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "libtorch/nn/flat_parameters.h"
#include "train/optimizer.h"
#include "train/processes/flat_shares.h"
#include "train/saved_state.h"

namespace seqconv::internal {

/// The tensors of a run: parameters, gradients under way, optimiser state, and
/// the parameters' moving average where one is kept.
struct RunTensors {
  const FlatParameters& parameters;
  Optimizer& optimizer;
  at::Tensor average{};  ///< [P] float32, or undefined
  FlatShares shares{};   ///< which part optimizer and average hold
};

/// Of a contiguous float32 tensor.
std::span<const std::byte> bytes_of(const at::Tensor& tensor);

/// Writes training/state.safetensors atomically: parameters, optimiser state,
/// moving average, in the middle of an accumulation the partial gradient; and
/// as metadata the position, `settings` (what a resumed run must share) and a
/// checksum. It is whole, however the tensors are cut: then all processes call
/// this, and the first writes what it has collected.
void save_state(
    const std::filesystem::path& file,
    const Position& position,
    const Json& settings,
    const RunTensors& tensors);

/// A tensor with which no run can go on.
struct UnsoundTensor {
  std::string name;       ///< "parameter 'bias'", or what of it
  size_t not_finite = 0;  ///< numbers that are NaN or infinite
  size_t negative = 0;    ///< squares below 0
};

/// The first one of those that this process has. Gradients under way may be
/// infinite: their update will be skipped.
std::optional<UnsoundTensor> find_unsound(const RunTensors& tensors);

/// The second step of reading it back, after read_state, when the model stands.
/// Error for a state of another model or with numbers that no run can go on
/// with. A process takes its share.
void load_state_tensors(
    const RootedPath& file, const Position& position, const RunTensors& tensors);

}  // namespace seqconv::internal
