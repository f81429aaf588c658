#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace seqconv::internal::metrics {

/// Numbers the n-grams of one text, each by the number of its first n - 1
/// symbols and its last symbol, and counts them.
class NgramTable {
 public:
  static constexpr uint32_t kAbsent = std::numeric_limits<uint32_t>::max();

  /// Empties the table; up to `most` n-grams will come.
  void clear(size_t most) {
    const size_t size = std::bit_ceil(2 * most + 2);
    shift_ = 64 - std::countr_zero(size);
    slots_.assign(size, {0, kAbsent});
    counts_.clear();
  }

  uint32_t add(uint32_t prefix, uint32_t symbol) {
    Slot& slot = find_slot(join(prefix, symbol));
    if (slot.number == kAbsent) {
      slot = {join(prefix, symbol), static_cast<uint32_t>(counts_.size())};
      counts_.push_back(0);
    }
    ++counts_[slot.number];
    return slot.number;
  }

  /// kAbsent for what is not in the table.
  uint32_t find(uint32_t prefix, uint32_t symbol) { return find_slot(join(prefix, symbol)).number; }

  /// By number.
  const std::vector<int32_t>& counts() const { return counts_; }

 private:
  struct Slot {
    uint64_t key;
    uint32_t number;
  };

  static uint64_t join(uint32_t prefix, uint32_t symbol) { return uint64_t{prefix} << 32 | symbol; }

  Slot& find_slot(uint64_t key) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    size_t at = (key * kGolden) >> shift_;
    while (slots_[at].number != kAbsent && slots_[at].key != key)
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  int shift_ = 63;
  std::vector<Slot> slots_;
  std::vector<int32_t> counts_;
};

}  // namespace seqconv::internal::metrics
