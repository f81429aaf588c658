#include "runtime/workspace.h"

#include <sys/mman.h>

#include <new>

namespace seqconv::internal::runtime {
namespace {

constexpr int64_t kSystemPage = 4096;
/// The first page. Most of a small model's batches need no other.
constexpr int64_t kFirstPage = int64_t{1} << 18;
/// A workspace at rest keeps no more. For what works with more than this, new
/// pages take no time beside the work.
constexpr int64_t kMostKept = int64_t{64} << 20;

/// Some more than `size`, so that needs that creep up ask for new pages a
/// number of times that grows with their logarithm.
int64_t generous(int64_t size) {
  return (size + size / 4 + kSystemPage - 1) / kSystemPage * kSystemPage;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEQCONV_PAGES_ON_HEAP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEQCONV_PAGES_ON_HEAP 1
#endif
#endif

#ifdef SEQCONV_PAGES_ON_HEAP
// Sanitizers know their ends.
std::byte* map_page(int64_t size) {
  try {
    return static_cast<std::byte*>(
        ::operator new (static_cast<size_t>(size), std::align_val_t{kSystemPage}));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void unmap_page(std::byte* data, int64_t /*size*/) {
  ::operator delete (data, std::align_val_t{kSystemPage});
}
#else
std::byte* map_page(int64_t size) {
  void* const data = ::mmap(
      nullptr,
      static_cast<size_t>(size),
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}
void unmap_page(std::byte* data, int64_t size) {
  ::munmap(data, static_cast<size_t>(size));
}
#endif

}  // namespace

/// Goes on to a page with room for `size` bytes. Those behind the one in use
/// that are too small are of no more use.
void Workspace::turn_page(int64_t size) {
  const size_t next = used_ > 0 ? page_ + 1 : page_;
  if (next >= pages_.size() || pages_[next].size < size) {
    drop_from(next);
    add_page(
        std::max({generous(size), live_ / 2, joined_, kFirstPage}), std::max(size, kSystemPage));
  }
  page_ = next;
  used_ = 0;
}

/// At least of `least` bytes where there is not memory for `size`.
void Workspace::add_page(int64_t size, int64_t least) {
  size = (size + kSystemPage - 1) / kSystemPage * kSystemPage;
  least = (least + kSystemPage - 1) / kSystemPage * kSystemPage;
  pages_.reserve(pages_.size() + 1);
  std::byte* data = map_page(size);
  if (data == nullptr)
    data = map_page(size = least);
  if (data == nullptr)
    throw std::bad_alloc();
  joined_ = 0;
  pages_.push_back({data, size});
  bytes_ += size;
  bytes_of_all_ += size;
}

/// Instead of several pages the next one to be made holds all.
void Workspace::join() {
  drop_from(0);
  joined_ = generous(most_);
}

void Workspace::drop_from(size_t page) {
  for (; pages_.size() > page; pages_.pop_back()) {
    unmap_page(pages_.back().data, pages_.back().size);
    bytes_ -= pages_.back().size;
    bytes_of_all_ -= pages_.back().size;
  }
}

void Workspace::rest() {
  const int64_t wanted = std::max(bytes_, joined_);
  if (wanted > kMostKept || wanted > 4 * std::max(most_, kFirstPage)) {
    drop_from(0);
    joined_ = 0;
  }
  most_ = 0;
}

WorkspacePool::~WorkspacePool() {
  for (std::atomic<Workspaces*>& place : idle_)
    delete place.load();
}

std::unique_ptr<Workspaces> WorkspacePool::take() {
  for (std::atomic<Workspaces*>& place : idle_)
    if (place.load(std::memory_order_relaxed) != nullptr)
      if (Workspaces* const idle = place.exchange(nullptr))
        return std::unique_ptr<Workspaces>(idle);
  return std::make_unique<Workspaces>();
}

void WorkspacePool::give_back(std::unique_ptr<Workspaces> spaces) noexcept {
  spaces->kept.rest();
  spaces->scratch.rest();
  for (std::atomic<Workspaces*>& place : idle_) {
    Workspaces* nothing = nullptr;
    if (place.compare_exchange_strong(nothing, spaces.get())) {
      static_cast<void>(spaces.release());
      return;
    }
  }
}

}  // namespace seqconv::internal::runtime
