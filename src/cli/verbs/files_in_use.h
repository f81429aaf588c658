#pragma once

#include <string>
#include <vector>

#include "base/file_stamps.h"
#include "base/rooted_path.h"
#include "model/model_description.h"
#include "pipeline/system.h"

namespace seqconv::internal::verbs {

/// The files of the models, and those beside them, that a verb works with.
class FilesInUse {
 public:
  /// Before they are opened. Errors of find_model.
  explicit FilesInUse(const std::vector<RootedPath>& models, const FilesBeside& beside = {});

  /// The files of each model, in the order given.
  const std::vector<ModelFiles>& models() const { return models_; }

  /// Error where another file has come in the place of one since then, or one
  /// was written to: what was opened may not be what is there.
  void check_same() const;
  /// Error where one was written to where it lay: results that were made since
  /// then are worth nothing. One that was replaced is no fault, as what is open
  /// keeps the old one.
  void check_not_written() const;

 private:
  std::vector<ModelFiles> models_;
  FileStamps stamps_;
};

}  // namespace seqconv::internal::verbs
