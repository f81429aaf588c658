#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/options.h"
#include "model/checkpoint/pytorch_file.h"

namespace seqconv::internal {

/// Which of a checkpoint's parameters are meant: those that were trained, or
/// their exponential moving average.
enum class CheckpointWeights { kTrained, kEma };

/// A checkpoint of fairseq or of what is built on it: the model's tensors and
/// the arguments of its training.
class FairseqCheckpoint {
 public:
  /// Opens a file that holds {"model": ..., "args" or "cfg": ...}, or a model's
  /// dictionary alone. Error, naming the file, when it is neither, holds no
  /// such average, something in the model's dictionary is no tensor (with its
  /// class), or a wrapper stands in front of some of its names alone.
  FairseqCheckpoint(const std::filesystem::path& path, CheckpointWeights weights);
  FairseqCheckpoint(PyTorchFile file, CheckpointWeights weights);

  const std::string& where() const { return file_.where(); }
  /// Tensors by name; bookkeeping ones (see is_bookkeeping) are left out, and
  /// so is wrapper().
  const std::map<std::string, StridedTensor>& tensors() const { return tensors_; }
  /// Names of those bookkeeping ones.
  const std::set<std::string>& bookkeeping() const { return bookkeeping_; }
  /// The tensor called `name`, whose storage is checked first; Error when there
  /// is none.
  const StridedTensor& read(const std::string& name) const;
  /// Settings of model and task by name, an empty object when none are stored.
  const Json& arguments() const { return arguments_; }
  /// Tokens of a source, </s> counted, that training kept of a longer one
  /// (truncate_source and max_source_positions of the task); 0: all.
  int64_t source_cut() const { return source_cut_; }
  /// The words that a wrapper of the model, DistributedDataParallel ("module.")
  /// or torch.compile ("_orig_mod."), had put in front of every name.
  const std::string& wrapper() const { return wrapper_; }
  /// Classes of which the file holds objects that nothing was made of.
  const std::vector<std::string>& ignored_classes() const { return ignored_; }
  /// True when the file holds an average that was not asked for.
  bool has_other_ema() const { return has_other_ema_; }
  void release() const { file_.release(); }

 private:
  void read_model(const PickleValue& model);
  void read_arguments(const PickleValue& root);
  void read_source_cut(const Json& task);
  void list_ignored_classes();

  PyTorchFile file_;
  std::map<std::string, StridedTensor> tensors_;
  std::set<std::string> bookkeeping_;
  std::map<std::string, PickleId> values_;
  std::string wrapper_;
  Json arguments_ = Json::object();
  int64_t source_cut_ = 0;
  std::vector<std::string> ignored_;
  bool has_other_ema_ = false;
};

}  // namespace seqconv::internal
