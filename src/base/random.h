#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace seqconv::internal {

/// Names the place where random numbers are drawn during training. Numbers are
/// a pure function of this key and of an element's index, so that an
/// interrupted run, several processes and a captured graph see the same ones.
struct RandomKey {
  uint64_t seed = 1;
  uint64_t update = 0;
  uint64_t micro_batch = 0;
};

/// Mixes two words into one (SplitMix64's finaliser over both).
constexpr uint64_t mix_words(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15ULL * (b + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The 64-bit seed of one place (a dropout, a DropConnect) of one micro-batch.
constexpr uint64_t place_seed(const RandomKey& key, uint64_t place) {
  return mix_words(mix_words(mix_words(key.seed, key.update), key.micro_batch), place);
}

/// Philox4x32-10 (Salmon et al. 2011): four random words for one counter.
constexpr std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter) {
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter);
  uint32_t c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Random word of element `index` of the stream `seed`: word index % 4 of
/// Philox block index / 4. Every dropout mask of the project is built on it.
constexpr uint32_t random_word(uint64_t seed, uint64_t index) {
  return philox(seed, index / 4)[index % 4];
}

/// An element is kept by dropout p when its random word is >= this threshold.
constexpr uint32_t drop_threshold(double p) {
  const double scaled = p * 4294967296.0;
  return scaled >= 4294967295.0 ? 4294967295u : static_cast<uint32_t>(scaled);
}

/// Fisher-Yates shuffle that gives the same order on every platform.
template <class T>
void shuffle(std::vector<T>& items, uint64_t seed) {
  for (uint64_t i = items.size(); i > 1; --i) {
    const uint64_t word = mix_words(seed, i);
    const uint64_t j = static_cast<uint64_t>((static_cast<unsigned __int128>(word) * i) >> 64);
    std::swap(items[i - 1], items[j]);
  }
}

}  // namespace seqconv::internal
