#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "characters.h"

namespace seqconv::metrics {

/// Numbers for the words of one sentence and its references, from 0 on.
class WordNumbers {
 public:
  WordNumbers() { numbers_.reserve(64); }

  /// Of the words between white space.
  std::vector<uint32_t> of_text(std::string text) {
    std::vector<uint32_t> numbers;
    for (std::string_view word : split_words(keep(std::move(text))))
      numbers.push_back(of_word(word));
    return numbers;
  }
  /// Of one word, which is a part of what keep() gave or lives as long.
  uint32_t of_word(std::string_view word) {
    const auto next = static_cast<uint32_t>(numbers_.size());
    return numbers_.try_emplace(word, next).first->second;
  }
  const std::string& keep(std::string text) {
    return texts_.emplace_back(std::move(text));
  }

 private:
  std::list<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

}  // namespace seqconv::metrics
