#include <cstdint>

#include "model/read_everything.h"

// Arbitrary bytes as a PyTorch file and as a checkpoint.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  seqconv::internal::testing::read_everything({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
