#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/characters.h"

namespace seqconv::internal::metrics {

/// Numbers for different words, from 0 on.
class WordNumbers {
 public:
  WordNumbers() = default;
  WordNumbers(WordNumbers&&) = default;  // others would see its texts go
  WordNumbers& operator=(WordNumbers&&) = default;

  /// Of the words between white space.
  std::vector<uint32_t> of_text(std::string text) {
    return of_words(split_words(keep(std::move(text))));
  }
  /// Of words, each a part of what keep() gave or of what lives as long.
  std::vector<uint32_t> of_words(const std::vector<std::string_view>& words) {
    std::vector<uint32_t> numbers;
    numbers.reserve(words.size());
    for (std::string_view word : words)
      numbers.push_back(of_word(word));
    return numbers;
  }
  uint32_t of_word(std::string_view word) {
    Slot& slot = find_slot(word);
    return slot.word.data() != nullptr ? slot.number : add(word, slot);
  }
  /// Of a word that need not live on.
  uint32_t of_copy(std::string_view word) {
    Slot& slot = find_slot(word);
    return slot.word.data() != nullptr ? slot.number : add(keep(std::string(word)), slot);
  }
  const std::string& keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  /// How many different words there have been.
  uint32_t count() const { return count_; }

 private:
  struct Slot {
    std::string_view word;  // without data where there is none
    uint32_t number = 0;
  };

  uint32_t add(std::string_view word, Slot& slot) {
    slot = {word.data() == nullptr ? std::string_view("") : word, count_};
    if (2 * ++count_ > slots_.size())
      grow();
    return count_ - 1;
  }
  Slot& find_slot(std::string_view word) {
    size_t at = std::hash<std::string_view>{}(word) & (slots_.size() - 1);
    while (slots_[at].word.data() != nullptr && slots_[at].word != word)
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  void grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(2 * old.size());
    for (const Slot& slot : old)
      if (slot.word.data() != nullptr)
        find_slot(slot.word) = slot;
  }

  std::list<std::string> texts_;
  std::vector<Slot> slots_ = std::vector<Slot>(128);
  uint32_t count_ = 0;
};

}  // namespace seqconv::internal::metrics
