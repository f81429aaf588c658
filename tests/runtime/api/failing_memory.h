#pragma once

#include <cstddef>
#include <cstdint>

namespace seqconv::internal::testing {

/// While it lives, memory that any thread asks of C++, or of
/// the system in pages, is now and then refused.
class FailingMemory {
 public:
  struct Plan {
    int64_t number = -1;  ///< the allocation that fails; 0 is the next
    bool and_all_after = false;
    size_t largest = SIZE_MAX;  ///< larger ones fail
    size_t smallest = 0;        ///< smaller ones neither fail nor count
  };
  explicit FailingMemory(const Plan& plan);
  ~FailingMemory();

  bool has_failed() const;
};

}  // namespace seqconv::internal::testing
