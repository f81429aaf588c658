#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Operators beside what people would use instead, through LibTorch on both
/// sides: allocations, autograd and all.
namespace seqconv::bench {

struct RivalCase {
  std::string name;
  std::function<void()> call;
};

/// Ours comes first.
struct RivalGroup {
  std::string name;
  std::string pass;  ///< "forward" or "both"
  int64_t channels = 0;
  int64_t steps = 0;
  int64_t kernel_size = 0;
  std::vector<RivalCase> entries;
};

/// Comparisons of sequences of T tokens, C = 512 and H = 8: dynamicconv K = 31
/// with band, windows and attention; lightconv K = 3 and 7 with depthwise
/// conv1d; talk with prefix sums. Shapes and formulations are those of the
/// usual comparison in PyTorch; band matrices beyond T = 512 are left out of
/// nothing.
std::vector<RivalGroup> rival_groups(int64_t tokens, int64_t steps);

}  // namespace seqconv::bench
