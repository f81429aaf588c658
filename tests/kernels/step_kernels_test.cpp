#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "kernels/conv.h"
#include "kernels/kernel_support.h"
#include "kernels/packed_linear.h"
#include "kernels/talk.h"

/// What kernels cost besides their result: the one-token forms, and the
/// backward passes of the convolutions.
namespace {

/// Calls of operator new so far, and bytes.
int64_t allocations = 0, allocated = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  ++allocations;
  allocated += static_cast<int64_t>(size);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (void* const p = std::aligned_alloc(alignment, rounded))
    return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate(size, 16);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace seqconv::internal::kernels {
namespace {

using testing::draw;

/// Five rows of the size of a translation model.
constexpr int64_t kRows = 5, kChannels = 512, kHeads = 8, kTaps = 31;

struct StepTest : ::testing::Test {
  std::mt19937 random{1};
  std::vector<float> x = draw<float>(random, kRows* kChannels);
  std::vector<float> y = std::vector<float>(x.size());
  std::vector<float> ring = draw<float>(random, kRows* kTaps* kChannels);
  std::vector<float> logits = draw<float>(random, kRows* kHeads* kTaps);
  Execution run{testing::serial};

  ConvStep<float, float> conv(int64_t position) {
    return {
        .shape = {kRows, 1, kChannels, kHeads, kTaps, kTaps - 1},
        .x = x.data(),
        .logits = logits.data(),
        .state = {ring.data(), kTaps - 1, position},
        .y = y.data()};
  }
  TalkStep<float, float> talk(int64_t position) {
    return {
        .shape = {kRows, 1, kChannels, kHeads, kTaps, 0},
        .x = x.data(),
        .offset_left = logits.data(),
        .state = {ring.data(), kTaps, position},
        .y = y.data()};
  }
};

TEST_F(StepTest, TakesNoMemory) {
  for (float& offset : logits)
    offset = std::abs(offset) / 8;
  const int64_t before = allocations;
  lightconv_step<float>(conv(40), run);
  dynamicconv_step(conv(40), run);
  talk_step(talk(40), run);
  EXPECT_EQ(allocations - before, 0);
}

TEST_F(StepTest, ProductsTakeNoMemoryFromTheSecondOn) {
  const std::vector<float> weight(kChannels * 2 * 24);
  const PackedLinear packed(weight.data(), 24, 2 * kChannels);
  const std::vector<float> inputs(kRows * 2 * kChannels);
  const LinearPass pass = {.rows = kRows, .x = inputs.data(), .y = y.data()};
  packed_linear(packed, pass, run.parallel_for);
  const int64_t before = allocations;
  packed_linear(packed, pass, run.parallel_for);
  EXPECT_EQ(allocations - before, 0);
}

TEST_F(StepTest, WritesOneColumnOfTheState) {
  constexpr int64_t kPosition = 47, kSlot = kPosition % (kTaps - 1);
  const std::vector<float> before = ring;
  dynamicconv_step(conv(kPosition), run);
  for (int64_t n = 0; n < kRows; ++n)
    for (int64_t slot = 0; slot < kTaps - 1; ++slot)
      for (int64_t c = 0; c < kChannels; ++c) {
        const size_t i = testing::place((n * (kTaps - 1) + slot) * kChannels + c);
        const float want = slot == kSlot ? x[testing::place(n * kChannels + c)] : before[i];
        ASSERT_EQ(ring[i], want) << n << " " << slot << " " << c;
      }
}

/// The backward pass of a head of one channel, of positions of two sequences.
void differentiate(
    bool dynamic, bool renormalize, int64_t steps, int64_t K, const ParallelFor& parallel_for) {
  const auto count = testing::place(2 * steps);
  const std::vector<float> x(count, 1.0f), grad_y(count, 1.0f);
  const std::vector<float> logits((dynamic ? count : 1) * testing::place(K));
  std::vector<float> grad_x(count), grad_logits(logits.size());
  const ConvBackward<float, float> args{
      .shape = {2, steps, 1, 1, K, K / 2},
      .renormalize_edges = renormalize,
      .x = x.data(),
      .logits = logits.data(),
      .grad_y = grad_y.data(),
      .grad_x = grad_x.data(),
      .grad_logits = grad_logits.data()};
  allocated = 0;
  dynamic ? dynamicconv_backward(args, {parallel_for})
          : lightconv_backward<float>(args, {parallel_for});
}

TEST(ConvBackward, MemoryGrowsWithTheTapsOnly) {
  constexpr int64_t kSteps = 3000, kFew = 250;
  for (const auto& [dynamic, renormalize] :
       {std::pair{true, false}, {false, false}, {false, true}}) {
    differentiate(dynamic, renormalize, kSteps, kFew, testing::serial);
    const int64_t bytes = allocated;
    differentiate(dynamic, renormalize, kSteps, 4 * kFew, testing::serial);
    EXPECT_LE(allocated, 9 * bytes / 2) << dynamic << renormalize;
  }
}

TEST(ConvBackward, HasWorkForManyThreads) {
  constexpr int64_t kSteps = 64 * 100;
  for (const bool dynamic : {false, true})
    for (const bool renormalize : {false, true}) {
      int64_t pieces = 0;
      differentiate(dynamic, renormalize, kSteps, 3, [&](int64_t count, int64_t, const auto& body) {
        pieces = std::max(pieces, count);
        body(0, count);
      });
      EXPECT_GE(pieces, 200) << dynamic << renormalize;
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels
