#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal::metrics {

/// The longest common subsequence of a reference and hypotheses, 64 cells of
/// its table at a time (Hyyrö 2004): n reference and m hypothesis tokens take
/// O(n m / 64) steps, and memory of O(n + m) and a table of at most 8 MB.
class CommonSubsequence {
 public:
  /// The reference that the hypotheses are compared with; it must outlive that.
  /// What is not below `symbols` matches nothing.
  void set_reference(std::span<const uint32_t> reference, size_t symbols);

  /// All symbols of a hypothesis are below `symbols`.
  size_t length(std::span<const uint32_t> hypothesis);

  /// Sets `marked` [n] where the reference is in the longest common
  /// subsequence. Of several the one that is found from the ends: equal tokens
  /// are taken; else the reference's last token is passed over unless that
  /// makes what is left shorter. So do ROUGE-1.5.5 and rouge_score.
  void mark(std::span<const uint32_t> hypothesis, std::vector<uint8_t>& marked);

 private:
  /// Where a symbol stands within 64 places of the reference.
  struct Mask {
    uint64_t bits;
    uint32_t word;
    uint32_t next;
  };

  void start(std::span<uint64_t> state) const;
  void advance(uint32_t symbol, std::span<uint64_t> state) const;
  size_t keep_starts(std::span<const uint32_t> hypothesis);

  std::span<const uint32_t> reference_;
  size_t words_ = 0;
  std::vector<Mask> masks_;
  std::vector<uint32_t> first_;    ///< of a symbol's masks
  std::vector<uint32_t> symbols_;  ///< those that have masks
  std::vector<uint64_t> state_;
  std::vector<uint64_t> starts_;  ///< states before each block
  std::vector<uint64_t> rows_;    ///< states behind each symbol of a block
};

}  // namespace seqconv::internal::metrics
