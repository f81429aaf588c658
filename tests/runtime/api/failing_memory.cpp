#include "failing_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

constexpr int64_t kNever = INT64_MAX / 2;

std::atomic<int64_t> until_failure = kNever;  // below 0: it is over
std::atomic<bool> all_after = false;
std::atomic<size_t> largest = SIZE_MAX;
std::atomic<size_t> smallest = 0;
std::atomic<int64_t> failures = 0;

bool fails(size_t size) {
  if (size < smallest)
    return false;
  const int64_t left = until_failure--;
  return left == 0 || (left < 0 && all_after) || size > largest;
}

void* allocate(size_t size, size_t alignment) {
  void* memory = nullptr;
  if (fails(size) ||
      ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(size, 1)) !=
          0) {
    ++failures;
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

namespace seqconv::internal::testing {

FailingMemory::FailingMemory(const Plan& plan) {
  failures = 0;
  all_after = plan.and_all_after;
  largest = plan.largest;
  smallest = plan.smallest;
  until_failure = plan.number < 0 ? kNever : plan.number;
}

FailingMemory::~FailingMemory() {
  all_after = false;
  largest = SIZE_MAX;
  until_failure = kNever;
}

bool FailingMemory::has_failed() const {
  return failures > 0;
}

}  // namespace seqconv::internal::testing

// Those of the whole program, libraries among it, but for arrays, which
// sanitizers keep to themselves; and the pages of workspaces, which lie on the
// heap where there is a sanitizer.
void* operator new(size_t size) {
  return allocate(size, alignof(std::max_align_t));
}
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::visibility("default")]] void* mmap(
    void* place, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) != 0 && fails(size)) {
    ++failures;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  // NOLINTNEXTLINE: the number of the call is what this is about
  return reinterpret_cast<void*>(::syscall(SYS_mmap, place, size, protection, flags, file, offset));
}
#endif
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
