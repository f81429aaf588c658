#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/options.h"

namespace seqconv::internal {

/// A learned tensor of a model: its name and shape in model.safetensors.
struct ParameterShape {
  std::string name;
  std::vector<int64_t> shape;
  /// Says whether it is a matrix of a linear map, or of words, a row each
  /// output or word: quantized folders have those as whole numbers.
  bool is_matrix = false;
};

/// The number of symbols of each side; a language model has a target alone.
struct VocabularySizes {
  int64_t source = 0;
  int64_t target = 0;
};

/// The parameters of the model that these options describe, without building
/// it: the same names, shapes and order as the modules' own. A matrix that is
/// shared stands once, under the name that comes first. `options` must be valid
/// for the task.
std::vector<ParameterShape> list_parameters(
    const ModelOptions& options, Task task, const VocabularySizes& vocabulary);

/// Scalars in all of these.
int64_t parameter_count(const std::vector<ParameterShape>& parameters);

/// UsageError for what options alone do not tell: a matrix that sides with
/// vocabularies of two sizes share, cutoffs beyond the vocabulary.
void check_vocabulary(const ModelOptions& options, Task task, const VocabularySizes& vocabulary);

/// The ids at which the bands of an adaptive input or softmax end, V last
/// (semantics.md 2.2).
std::vector<int64_t> band_ends(const std::vector<int64_t>& cutoffs, int64_t vocabulary);

}  // namespace seqconv::internal
