#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace seqconv::internal::metrics {

/// Numbers for the characters of one sentence and its references, from 0 on.
class CharacterNumbers {
 public:
  uint32_t of(char32_t c) {
    uint32_t& number = c < near_.size() ? near_[c] : far_[c];
    if (number == 0)
      number = ++count_;
    return number - 1;
  }
  /// How many different characters there have been.
  uint32_t count() const { return count_; }

 private:
  std::array<uint32_t, 0x800> near_{};  // of alphabets; 0: none yet
  std::unordered_map<char32_t, uint32_t> far_;
  uint32_t count_ = 0;
};

}  // namespace seqconv::internal::metrics
