#include <atomic>

#include "seqconv/api/runtime.h"

namespace seqconv::api {

struct CancelState {
  std::atomic<bool> cancelled = false;
};

CancelToken::CancelToken() : state_(std::make_shared<CancelState>()) {}

void CancelToken::cancel() const {
  state_->cancelled = true;
}

bool CancelToken::is_cancelled() const {
  return state_->cancelled;
}

}  // namespace seqconv::api
