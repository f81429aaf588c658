#pragma once

#include "pipeline/request.h"

namespace seqconv::internal {

/// As long as it lives, what the calling thread computes asks now and then
/// whether to stop: also between the layers of an encoder, which know of no
/// request.
class StopScope {
 public:
  /// stop outlives it.
  explicit StopScope(const StopQuestion& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// Throws Stopped where the thread's innermost scope says so.
  static void check();

 private:
  const StopQuestion* before_;
};

}  // namespace seqconv::internal
