// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ceilings.cpp"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "ceilings.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::bench::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void copy_plain(const char* from, char* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto step = static_cast<int64_t>(4 * hn::Lanes(d));
  const int64_t lanes = step / 4;
  int64_t i = 0;
  for (; i + step <= bytes; i += step)
    for (int64_t k = 0; k < step; k += lanes)
      hn::Store(
          hn::Load(d, reinterpret_cast<const uint8_t*>(from + i + k)),
          d,
          reinterpret_cast<uint8_t*>(to + i + k));
}

void copy_streaming(const char* from, char* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto step = static_cast<int64_t>(4 * hn::Lanes(d));
  const int64_t lanes = step / 4;
  int64_t i = 0;
  for (; i + step <= bytes; i += step)
    for (int64_t k = 0; k < step; k += lanes)
      hn::Stream(
          hn::Load(d, reinterpret_cast<const uint8_t*>(from + i + k)),
          d,
          reinterpret_cast<uint8_t*>(to + i + k));
  hwy::FlushStream();
}

/// In four places at once: one stream would wait at the end of every page.
double sum_floats(const float* from, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t part = count / 4;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i < part; i += static_cast<int64_t>(hn::Lanes(d))) {
    s0 = hn::Add(s0, hn::Load(d, from + i));
    s1 = hn::Add(s1, hn::Load(d, from + part + i));
    s2 = hn::Add(s2, hn::Load(d, from + 2 * part + i));
    s3 = hn::Add(s3, hn::Load(d, from + 3 * part + i));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

/// 12 independent chains hide the latency of the multiply-add.
double fma_chains(int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999999f), b = hn::Set(d, 1e-9f);
  auto c0 = hn::Iota(d, 1), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0;
  auto c6 = c0, c7 = c0, c8 = c0, c9 = c0, c10 = c0, c11 = c0;
  for (int64_t i = 0; i < rounds; ++i) {
    c0 = hn::MulAdd(c0, a, b);
    c1 = hn::MulAdd(c1, a, b);
    c2 = hn::MulAdd(c2, a, b);
    c3 = hn::MulAdd(c3, a, b);
    c4 = hn::MulAdd(c4, a, b);
    c5 = hn::MulAdd(c5, a, b);
    c6 = hn::MulAdd(c6, a, b);
    c7 = hn::MulAdd(c7, a, b);
    c8 = hn::MulAdd(c8, a, b);
    c9 = hn::MulAdd(c9, a, b);
    c10 = hn::MulAdd(c10, a, b);
    c11 = hn::MulAdd(c11, a, b);
#if defined(__GNUC__) && defined(__x86_64__)
    // Keeps the compiler from folding chains that look the same.
    asm volatile("" : "+x"(c0.raw), "+x"(c1.raw), "+x"(c2.raw), "+x"(c3.raw));
    asm volatile("" : "+x"(c4.raw), "+x"(c5.raw), "+x"(c6.raw), "+x"(c7.raw));
    asm volatile("" : "+x"(c8.raw), "+x"(c9.raw), "+x"(c10.raw), "+x"(c11.raw));
#endif
  }
  const auto sum = hn::Add(
      hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)),
      hn::Add(
          hn::Add(hn::Add(c4, c5), hn::Add(c6, c7)), hn::Add(hn::Add(c8, c9), hn::Add(c10, c11))));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

int64_t float_lanes() {
  return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}

}  // namespace seqconv::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::bench {
using namespace internal;

HWY_EXPORT(copy_plain);
HWY_EXPORT(copy_streaming);
HWY_EXPORT(sum_floats);
HWY_EXPORT(fma_chains);
HWY_EXPORT(float_lanes);

namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kRounds = 100000;

}  // namespace

Copy::Copy(int64_t bytes, const kernels::ParallelFor& threads)
    : half_((bytes / 2 + kPage - 1) / kPage * kPage),
      threads_(threads),
      source_(
          static_cast<char*>(::operator new (static_cast<size_t>(half_), std::align_val_t{64}))),
      target_(
          static_cast<char*>(::operator new (static_cast<size_t>(half_), std::align_val_t{64}))) {
  std::fill_n(source_, half_, 1);
  std::fill_n(target_, half_, 0);
}

Copy::~Copy() {
  ::operator delete (source_, std::align_val_t{64});
  ::operator delete (target_, std::align_val_t{64});
}

void Copy::plain() {
  threads_(half_ / kPage, 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(copy_plain)
    (source_ + begin * kPage, target_ + begin * kPage, (end - begin) * kPage);
  });
}

void Copy::streaming() {
  threads_(half_ / kPage, 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(copy_streaming)
    (source_ + begin * kPage, target_ + begin * kPage, (end - begin) * kPage);
  });
}

double read_through(const void* from, int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(sum_floats)(
      static_cast<const float*>(from), bytes / static_cast<int64_t>(sizeof(float)));
}

double fma_burst_flops(int threads) {
  return 2.0 * 12 * static_cast<double>(HWY_DYNAMIC_DISPATCH(float_lanes)()) * kRounds * threads;
}

void fma_burst(int threads, const kernels::ParallelFor& parallel_for) {
  parallel_for(threads, 1, [](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      volatile double keep = HWY_DYNAMIC_DISPATCH(fma_chains)(kRounds);
      static_cast<void>(keep);
    }
  });
}

}  // namespace seqconv::bench
#endif
