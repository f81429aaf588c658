#include "metrics/numpy_random.h"

#include <array>

namespace seqconv::internal::metrics {
namespace {

using Pool = std::array<uint32_t, 4>;

constexpr uint32_t mix_high_bits(uint32_t value) {
  return value ^ (value >> 16);
}

/// Hashes words, each with a constant of its own.
struct WordHash {
  uint32_t constant;
  uint32_t factor;

  uint32_t operator()(uint32_t value) {
    value ^= constant;
    constant *= factor;
    return mix_high_bits(value * constant);
  }
};

/// SeedSequence's pool: the words of the seed, each mixed into all others.
Pool mix_seed(uint64_t seed) {
  WordHash hash{0x43B0D7E5, 0x931E8875};
  Pool pool{};
  pool[0] = static_cast<uint32_t>(seed);
  pool[1] = static_cast<uint32_t>(seed >> 32);
  for (uint32_t& word : pool)
    word = hash(word);
  for (size_t from = 0; from < pool.size(); ++from)
    for (size_t to = 0; to < pool.size(); ++to)
      if (from != to)
        pool[to] = mix_high_bits(0xCA01F9DDu * pool[to] - 0x4973F715u * hash(pool[from]));
  return pool;
}

constexpr unsigned __int128 join(uint64_t high, uint64_t low) {
  return static_cast<unsigned __int128>(high) << 64 | low;
}

constexpr auto kMultiplier = join(0x2360ED051FC65DA4, 0x4385DF649FCCF645);

}  // namespace

NumpyRandom::NumpyRandom(uint64_t seed) {
  const Pool pool = mix_seed(seed);
  WordHash hash{0x8B51F9DD, 0x58F38DED};
  std::array<uint64_t, 4> words;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t low = hash(pool[2 * i % pool.size()]);
    words[i] = low | uint64_t{hash(pool[(2 * i + 1) % pool.size()])} << 32;
  }
  increment_ = join(words[2], words[3]) << 1 | 1;
  next64();
  state_ += join(words[0], words[1]);
  next64();
}

uint64_t NumpyRandom::next64() {
  state_ = state_ * kMultiplier + increment_;
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const auto turn = static_cast<int>(state_ >> 122);
  return folded >> turn | folded << (-turn & 63);
}

uint32_t NumpyRandom::next32() {
  has_half_ = !has_half_;
  if (!has_half_)
    return second_half_;
  const uint64_t both = next64();
  second_half_ = static_cast<uint32_t>(both >> 32);
  return static_cast<uint32_t>(both);
}

uint32_t NumpyRandom::below(uint32_t count) {
  if (count == 1)
    return 0;
  uint64_t product = uint64_t{next32()} * count;
  if (static_cast<uint32_t>(product) < count) {
    const uint32_t least = -count % count;  // 2^32 mod count
    while (static_cast<uint32_t>(product) < least)
      product = uint64_t{next32()} * count;
  }
  return static_cast<uint32_t>(product >> 32);
}

bool NumpyRandom::bit() {
  if (bits_left_ == 0) {
    bits_ = next32();
    bits_left_ = 32;
  }
  const bool value = (bits_ & 1) != 0;
  bits_ >>= 1;
  --bits_left_;
  return value;
}

}  // namespace seqconv::internal::metrics
