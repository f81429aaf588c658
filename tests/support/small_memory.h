#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <limits>
#include <string>

namespace seqconv::internal::testing {

/// Memory of LibTorch's on the CPU, of which no piece may be larger than
/// `limit`.
class SmallMemory : public at::Allocator {
 public:
  SmallMemory() : memory_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, /*priority=*/1); }
  ~SmallMemory() override { c10::SetCPUAllocator(memory_, /*priority=*/1); }

  at::DataPtr allocate(size_t bytes) override {
    largest = std::max(largest, bytes);
    if (bytes > limit && refused < refusals) {
      ++refused;
      TORCH_CHECK(fault.empty(), fault);
      C10_THROW_ERROR(OutOfMemoryError, "small memory: no room");
    }
    return memory_->allocate(bytes);
  }
  at::DeleterFnPtr raw_deleter() const override { return memory_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  size_t limit = std::numeric_limits<size_t>::max();
  size_t largest = 0;
  std::string fault{};  ///< a library's words, instead of LibTorch's own error
  int refused = 0;
  int refusals = std::numeric_limits<int>::max();  ///< the most of them

 private:
  at::Allocator* memory_;
};

}  // namespace seqconv::internal::testing
