#include <atomic>

#include "runtime/api/guarded.h"
#include "seqconv/runtime.h"

namespace seqconv {
namespace {

const OutOfMemory kNoMemory("out of memory");

}  // namespace

const OutOfMemory& out_of_memory() {
  return kNoMemory;
}

struct CancelState {
  std::atomic<bool> cancelled = false;
};

CancelToken::CancelToken() : state_(guarded([] { return std::make_shared<CancelState>(); })) {}

void CancelToken::cancel() const {
  state_->cancelled = true;
}

bool CancelToken::is_cancelled() const {
  return state_->cancelled;
}

}  // namespace seqconv
