#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "kernels/packed_linear.h"
#include "model/parameters.h"
#include "pipeline/system.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal::runtime {

/// The ParallelFor of the runtime: threads are shared out by whole batches, and
/// one without a batch helps the others.
const kernels::ParallelFor& threads();

/// x [rows, K] -> [rows, N] by weights of the runtime.
struct Linear {
  kernels::PackedLinear weight;
  std::vector<float> bias;  ///< or none

  /// Adds what is not a field of `pass` already: bias and threads.
  void run(kernels::LinearPass pass) const {
    if (!bias.empty())
      pass.bias = bias.data();
    kernels::packed_linear(weight, pass, threads());
  }
};

/// Rows of a matrix that are looked up, as the file has them.
class Table {
 public:
  Table() = default;
  /// `scales`: of rows of int8, or null.
  Table(
      std::shared_ptr<const SafetensorsReader> file,
      const TensorView* view,
      const TensorView* scales)
      : file_(std::move(file)), view_(view), scales_(scales) {}

  int64_t width() const { return view_->shape[1]; }
  /// Row `id` as float32 -> out [width].
  void copy_row(int64_t id, float* out) const;

 private:
  std::shared_ptr<const SafetensorsReader> file_;
  const TensorView* view_ = nullptr;
  const TensorView* scales_ = nullptr;
};

/// The parameters of one model: its file, mapped, and checked against what its
/// options say.
class Weights {
 public:
  /// Products are made as `compute` says. Errors of check_parameters.
  Weights(const ModelToRun& model, Task task, ComputeType compute);
  /// Lets pages that were read for packing leave memory.
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  kernels::WeightType type() const { return type_; }
  /// Bytes of the matrices that were packed so far.
  int64_t bytes() const { return bytes_; }

  bool contains(const std::string& name) const { return file_->contains(name); }
  const std::vector<int64_t>& shape(const std::string& name) const { return file_->at(name).shape; }
  /// A matrix [outputs, inputs] of which rows are in memory.
  kernels::PackedLinear pack(
      const float* weight, int64_t outputs, int64_t inputs, bool gated = false) const;
  /// All numbers of a parameter, as float32.
  std::vector<float> numbers(const std::string& name) const;
  Table table(const std::string& name) const;
  /// A matrix [N, K] as a linear map, without bias.
  Linear matrix(const std::string& name) const;
  /// A matrix [K, N] as the linear map of its transpose.
  Linear transposed(const std::string& name) const;
  /// name + ".weight" and name + ".bias".
  Linear linear(const std::string& name, bool gated = false) const;

 private:
  kernels::PackedLinear packed(const std::string& name, bool gated) const;
  kernels::PackedLinear counted(kernels::PackedLinear made) const;
  Linear linear_of(kernels::PackedLinear packed, std::vector<float> bias) const;

  std::shared_ptr<const SafetensorsReader> file_;
  kernels::WeightType type_;
  mutable int64_t bytes_ = 0;
};

}  // namespace seqconv::internal::runtime
