#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/common/launches.h"
#include "kernels/cuda_host_block.h"

/// Runs the kernels of the device on the host, thread by thread.
namespace seqconv::internal::kernels::cuda::testing {

/// The devices of compute capability 7.5, the oldest.
inline constexpr Device kTuring = {.shared = kTuringShared, .multiplies_bfloat16 = false};

/// A Launcher (launches.h) that runs every block at once.
class HostLauncher {
 public:
  explicit HostLauncher(bool backwards = false, const Device& device = {})
      : backwards_(backwards), device_(device) {}

  template <class Body, class Task>
  void run(int64_t blocks, int64_t shared, const Task& task) {
    ASSERT_GT(blocks, 0);
    ASSERT_LT(blocks, int64_t{1} << 31);
    ASSERT_LE(shared, device_.shared);
    HostBlock block(static_cast<size_t>(shared), backwards_);
    for (int64_t i = 0; i < blocks; ++i) {
      block.start(backwards_ ? blocks - 1 - i : i);
      Body::run(block, task);
    }
    ++launches_;
  }
  int launches() const { return launches_; }
  Device device() const { return device_; }

 private:
  bool backwards_;
  Device device_;
  int launches_ = 0;
};

template <class S>
std::vector<S> narrowed(const std::vector<double>& values) {
  std::vector<S> result;
  for (const double value : values)
    result.push_back(narrow<S>(static_cast<float>(value)));
  return result;
}
template <class S>
std::vector<double> widened(const std::vector<S>& values) {
  std::vector<double> result;
  for (const S value : values)
    result.push_back(static_cast<double>(widen(value)));
  return result;
}

/// `count` normal numbers that both 16-bit types hold exactly.
class Numbers {
 public:
  explicit Numbers(unsigned seed) : engine_(seed) {}
  std::vector<double> normal(int64_t count) {
    std::normal_distribution<double> normal;
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(std::round(normal(engine_) * 32) / 32);
    return widened(narrowed<BFloat16>(result));
  }
  std::vector<uint8_t> bits(int64_t count, double p) {
    std::bernoulli_distribution keep(1 - p);
    std::vector<uint8_t> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(keep(engine_) ? 1 : 0);
    return result;
  }

 private:
  std::mt19937 engine_;
};

template <class S>
double bound() {
  switch (StorageOf<S>::kValue) {
    case Storage::kFloat:
      return 1e-5;
    case Storage::kBFloat16:
      return 4e-3;
    case Storage::kFloat16:
      return 1e-3;
  }
  return 0;
}

/// max |got - want| / max |want|, infinite where only one is not a number.
template <class S>
double error_of(const std::vector<S>& got, const std::vector<double>& want) {
  if (got.size() != want.size())
    return HUGE_VAL;
  double max_wanted = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(static_cast<double>(widen(got[i])) - want[i]);
    if (std::isnan(want[i]) && std::isnan(widen(got[i])))
      continue;
    if (!(difference < HUGE_VAL))
      return HUGE_VAL;
    worst = std::max(worst, difference);
    max_wanted = std::max(max_wanted, std::abs(want[i]));
  }
  return max_wanted > 0 ? worst / max_wanted : worst;
}

template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return a.size() == b.size() &&
      (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0);
}

/// Not a number in every type, for results that must be written throughout.
template <class S>
std::vector<S> garbage(int64_t count) {
  std::vector<S> result(static_cast<size_t>(count));
  if (count > 0)
    std::memset(static_cast<void*>(result.data()), 0xff, result.size() * sizeof(S));
  return result;
}

/// Memory of S that begins `shift` elements behind an address which is aligned
/// for everything.
template <class S>
class Shifted {
 public:
  Shifted(const std::vector<S>& values, size_t shift)
      : shift_(shift), all_(garbage<S>(static_cast<int64_t>(shift))) {
    all_.insert(all_.end(), values.begin(), values.end());
  }
  S* data() { return all_.data() + shift_; }
  std::vector<S> values() const {
    return {all_.begin() + static_cast<std::ptrdiff_t>(shift_), all_.end()};
  }

 private:
  size_t shift_;
  std::vector<S> all_;
};

}  // namespace seqconv::internal::kernels::cuda::testing
