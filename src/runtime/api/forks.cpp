#include "runtime/api/forks.h"

#include <pthread.h>

#include <atomic>
#include <new>

namespace seqconv::internal {
namespace {

std::atomic<uint64_t> forks_so_far = 0;
/// False where there is not memory enough.
const bool kCountsForks = ::pthread_atfork(nullptr, nullptr, [] { ++forks_so_far; }) == 0;

}  // namespace

uint64_t count_forks() {
  if (!kCountsForks)
    throw std::bad_alloc();
  return forks_so_far;
}

}  // namespace seqconv::internal
