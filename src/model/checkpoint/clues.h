#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/options.h"
#include "model/parameters.h"

namespace seqconv::internal {

/// What tells a model's options from a checkpoint: the shapes of its tensors,
/// the arguments stored with it, and a preset where both are silent. Notes
/// every decision and its reason.
class Clues {
 public:
  using Numbers = std::vector<int64_t>;

  /// `preset` may be null.
  Clues(const FairseqCheckpoint& checkpoint, const ModelOptions* preset)
      : checkpoint_(checkpoint), preset_(preset) {}

  // Tensors.
  bool has(const std::string& name) const;
  bool has_prefix(const std::string& prefix) const;
  /// The shape of a tensor; Error when it is missing or has fewer than
  /// `dimensions`.
  const Numbers& shape(const std::string& name, size_t dimensions) const;
  const std::map<std::string, StridedTensor>& tensors() const { return checkpoint_.tensors(); }
  const FairseqCheckpoint& checkpoint() const { return checkpoint_; }

  // Arguments; empty when they are not stored. Lists may be text ("[3,7]",
  // "3,7"). Error for another type.
  std::optional<int64_t> integer(const std::string& name) const;
  std::optional<double> real(const std::string& name) const;
  std::optional<bool> boolean(const std::string& name) const;
  std::optional<Numbers> integers(const std::string& name) const;

  const ModelOptions* preset() const { return preset_; }

  /// Notes "key = value (reason)".
  template <class T>
  void note(const std::string& key, const T& value, const std::string& reason) {
    decisions_.push_back(concat(key, " = ", Json(value).dump(), " (", reason, ")"));
  }
  const std::vector<std::string>& decisions() const { return decisions_; }

  /// The value of `key` by the first clue that there is: the shape of `tensor`,
  /// the argument called `argument`, the preset. Error when the first two
  /// contradict each other, or there is none.
  template <class T>
  T decide(
      const std::string& key,
      const std::optional<T>& by_shape,
      const std::string& tensor,
      const std::optional<T>& by_argument,
      const std::string& argument,
      const std::optional<T>& by_preset) {
    if (by_shape && by_argument && *by_shape != *by_argument)
      fail(
          where(),
          ": the stored argument ",
          argument,
          " = ",
          Json(*by_argument).dump(),
          " contradicts the shape of '",
          tensor,
          "', which says ",
          Json(*by_shape).dump());
    if (by_shape) {
      note(key, *by_shape, "shape of " + tensor);
      return *by_shape;
    }
    if (by_argument) {
      note(key, *by_argument, "stored argument " + argument);
      return *by_argument;
    }
    if (by_preset) {
      note(key, *by_preset, "preset");
      return *by_preset;
    }
    fail(
        where(),
        ": nothing tells ",
        key,
        ": neither the tensors' shapes nor a stored argument ",
        argument,
        "; say what the model is with --preset");
  }

  const std::string& where() const { return checkpoint_.where(); }

 private:
  /// A stored argument, or null.
  const Json* argument(const std::string& name) const;
  [[noreturn]] void reject(const std::string& name, const Json& value, const char* wanted) const;

  const FairseqCheckpoint& checkpoint_;
  const ModelOptions* preset_;
  std::vector<std::string> decisions_;
};

/// The layers of a side, "encoder" or "decoder", of a model of width `dim`.
StackOptions read_stack(Clues& clues, const std::string& side, int64_t dim);

/// The options of embeddings and output: tying, bands, learned positions. The
/// rest of `options` must have been decided.
void deduce_embeddings(Clues& clues, Task task, ModelOptions& options);

}  // namespace seqconv::internal
