#pragma once

#include "base/file_stamps.h"

namespace seqconv::internal {

struct ModelFiles;

/// Descriptions of models whose parameters are read after them, or copied
/// beside them, while another model may be written into their folders.
class DescriptionsInUse {
 public:
  /// Before the description is read.
  void add(const ModelFiles& model);
  /// Once the parameters are open: Error naming the first file that has been
  /// replaced or changed. Parameters alone may be, as a training run does.
  void check() const;

 private:
  FileStamps stamps_;
};

}  // namespace seqconv::internal
