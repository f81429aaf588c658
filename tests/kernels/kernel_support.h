#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <new>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/cache_line.h"
#include "kernels/conv.h"
#include "kernels/isa.h"
#include "kernels/parallel.h"

/// Random tensors and comparisons for tests of kernels, which run for every
/// instruction set that this processor has.
namespace seqconv::internal::kernels::testing {

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(enum_name(info.param));
}

template <class S>
double value(S stored) {
  return static_cast<double>(widen(stored));
}

template <class S>
S stored(double value) {
  return narrow<S>(static_cast<AccumulatorOf<S>>(value));
}

template <class S, class Allocator>
std::vector<double> wide(const std::vector<S, Allocator>& values) {
  std::vector<double> out;
  for (const S v : values)
    out.push_back(value(v));
  return out;
}

/// As `wide` had them before.
template <class S>
std::vector<S> stored(const std::vector<double>& values) {
  std::vector<S> out;
  out.reserve(values.size());
  for (const double v : values)
    out.push_back(stored<S>(v));
  return out;
}

/// A number of mean 0 and deviation 1, nearly normal: the sum of four bytes and of a fraction made
/// of the same bits, which takes a tenth of the time of std::normal_distribution.
inline float near_normal(std::mt19937& random) {
  const auto word = static_cast<uint32_t>(random());
  const uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  const float fraction = static_cast<float>(word * 0x9E3779B9U >> 8) * 0x1p-24f;
  return (static_cast<float>(sum) + fraction - 510.5f) / 147.8f;
}

/// Such numbers, exact in bfloat16.
template <class S>
std::vector<S> draw(std::mt19937& random, int64_t count) {
  std::vector<S> values(static_cast<size_t>(count));
  for (S& v : values)
    v = stored<S>(to_float(to_bfloat16(near_normal(random))));
  return values;
}

template <class S>
struct LineAllocator {
  using value_type = S;

  S* allocate(size_t count) { return static_cast<S*>(::operator new(count * sizeof(S), kLine)); }
  void deallocate(S* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const LineAllocator&) const { return true; }

 private:
  static constexpr std::align_val_t kLine{kCacheLine};
};

/// Values that begin on a cache line, as those of tensors do: only then are
/// they stored past the caches.
template <class S>
using Lines = std::vector<S, LineAllocator<S>>;

/// Error relative to the largest wanted value.
template <class S, class Allocator>
double relative_error(const std::vector<S, Allocator>& got, const std::vector<double>& want) {
  EXPECT_EQ(got.size(), want.size());
  if (got.size() != want.size())
    return INFINITY;
  double max = 1e-30, off = 0;
  // Pointers: checked elements of vectors take far longer.
  const S* some = got.data();
  for (const double& wanted : want) {
    max = std::max(max, std::abs(wanted));
    const double distance = std::abs(value(*some++) - wanted);
    off = distance == distance ? std::max(off, distance) : INFINITY;
  }
  return off / max;
}

/// What a plain evaluation in the accumulator type keeps, and half a unit of
/// the last place of a bfloat16 store.
template <class S>
constexpr double bound() {
  return std::is_same_v<S, double> ? 1e-12 : std::is_same_v<S, float> ? 1e-5 : 4e-3;
}

inline size_t place(int64_t i) {
  return static_cast<size_t>(i);
}

}  // namespace seqconv::internal::kernels::testing
