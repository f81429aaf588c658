#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "text/corpus/pair_corpus.h"

namespace seqconv::internal::testing {

/// Sequences in memory: what a foreign format would look like to the batcher.
class MemorySource : public TokenSource {
 public:
  explicit MemorySource(std::vector<std::vector<int32_t>> rows) : rows_(std::move(rows)) {}
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  std::span<const int32_t> tokens(int64_t index) const override {
    return rows_.at(static_cast<size_t>(index));
  }
  int64_t length(int64_t index) const override {
    return static_cast<int64_t>(tokens(index).size());
  }

 private:
  std::vector<std::vector<int32_t>> rows_;
};

/// A corpus of given {source, target} lengths without </s>; ids tell the pair.
inline PairCorpus corpus_of_lengths(const std::vector<std::pair<int, int>>& lengths) {
  std::vector<std::vector<int32_t>> sources, targets;
  int32_t id = 4;
  for (const auto& [source, target] : lengths) {
    sources.emplace_back(static_cast<size_t>(source), id);
    targets.emplace_back(static_cast<size_t>(target), id++);
  }
  return {
      std::make_shared<MemorySource>(std::move(sources)),
      std::make_shared<MemorySource>(std::move(targets))};
}

}  // namespace seqconv::internal::testing
