#include "text/python_random.h"

#include <algorithm>
#include <array>

namespace seqconv::internal {
namespace {

constexpr size_t kState = std::mt19937::state_size;

/// Hands a generator its state word for word: std::mt19937 takes what
/// generate() gives as it is.
struct GivenState {
  using result_type = uint32_t;

  template <class Iterator>
  void generate(Iterator begin, Iterator /*end*/) const {
    std::copy(words.begin(), words.end(), begin);
  }

  std::array<uint32_t, kState> words;
};

uint32_t scrambled(uint32_t before) {
  return before ^ (before >> 30);
}

/// Matsumoto and Nishimura's init_by_array() of one word.
GivenState state_of(uint32_t key) {
  GivenState state{};
  auto& words = state.words;
  words[0] = 19650218U;
  for (uint32_t i = 1; i < kState; ++i)
    words[i] = 1812433253U * scrambled(words[i - 1]) + i;
  size_t i = 1;
  const auto go_on = [&] {
    if (++i < kState)
      return;
    words[0] = words[kState - 1];
    i = 1;
  };
  for (size_t k = kState; k > 0; --k) {
    words[i] = (words[i] ^ (scrambled(words[i - 1]) * 1664525U)) + key;
    go_on();
  }
  for (size_t k = kState - 1; k > 0; --k) {
    words[i] = (words[i] ^ (scrambled(words[i - 1]) * 1566083941U)) - static_cast<uint32_t>(i);
    go_on();
  }
  words[0] = 0x80000000U;
  return state;
}

}  // namespace

PythonRandom::PythonRandom(uint32_t seed) {
  GivenState state = state_of(seed);
  words_.seed(state);
}

double PythonRandom::next() {
  const auto high = static_cast<double>(words_() >> 5);
  const auto low = static_cast<double>(words_() >> 6);
  return (high * 67108864 + low) / 9007199254740992;
}

}  // namespace seqconv::internal
