#include "pipeline/stop_scope.h"

namespace seqconv::internal {
namespace {

thread_local const StopQuestion* innermost = nullptr;

}  // namespace

StopScope::StopScope(const StopQuestion& stop) : before_(innermost) {
  innermost = &stop;
}

StopScope::~StopScope() {
  innermost = before_;
}

void StopScope::check() {
  if (innermost != nullptr && wants_to_stop(*innermost))
    throw Stopped();
}

}  // namespace seqconv::internal
