#include <ostream>

#include "kernels/cuda/talk_run.h"
#include "kernels/cuda_support.h"
#include "kernels/parallel.h"

/// The TaLK kernels of the device, run thread by thread on the host, against
/// the CPU's.
namespace seqconv::kernels::cuda::testing {
namespace {

struct TalkCase {
  int64_t B = 2, T = 5, H = 2, R = 4;
  int64_t max_left = 3, max_right = 2;
  bool causal = false;
  double largest = 1;
  std::vector<int64_t> lengths;

  int64_t C() const { return H * R; }
  TalkShape shape() const {
    return {B, T, C(), H, max_left, causal ? 0 : max_right};
  }
};

std::ostream& operator<<(std::ostream& out, const TalkCase& c) {
  return out << "B " << c.B << " T " << c.T << " H " << c.H << " R " << c.R
             << " left " << c.max_left << " right " << c.max_right
             << (c.causal ? " causal" : "") << " largest " << c.largest
             << (c.lengths.empty() ? "" : " lengths");
}

struct TalkValues {
  std::vector<double> x, left, right, grad_y;

  explicit TalkValues(const TalkCase& c) {
    Numbers numbers(static_cast<unsigned>(c.T * 31 + c.R));
    x = numbers.normal(c.B * c.T * c.C());
    grad_y = numbers.normal(c.B * c.T * c.C());
    left = offsets(c, 7);
    right = offsets(c, 11);
  }

  /// Sums of these are not exact, so that another order has other bits.
  static TalkValues inexact(const TalkCase& c) {
    TalkValues values(c);
    for (auto* const list :
         {&values.x, &values.grad_y, &values.left, &values.right})
      for (double& value : *list)
        value /= 1.1;
    return values;
  }

  /// Multiples of 1/256, some of them whole positions, exact in 16 bits.
  static std::vector<double> offsets(const TalkCase& c, int64_t step) {
    std::vector<double> result;
    for (int64_t i = 0; i < c.B * c.T * c.H; ++i)
      result.push_back(
          static_cast<double>((i * 97 + step * step) % 257) / 256 * c.largest);
    return widened(narrowed<BFloat16>(result));
  }
};

template <class S, class O>
struct TalkResult {
  std::vector<S> y, grad_x;
  std::vector<O> grad_left, grad_right;
};

/// `count` elements from one that starts `shift` elements after an aligned
/// address.
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

template <class S, class O>
TalkResult<S, O> run_on_host(
    const TalkCase& c,
    const TalkValues& values,
    bool backwards,
    size_t shift = 0) {
  HostLauncher launcher(backwards);
  Shifted<S> x(narrowed<S>(values.x), shift);
  Shifted<S> grad_y(narrowed<S>(values.grad_y), shift);
  const auto left = narrowed<O>(values.left), right = narrowed<O>(values.right);
  const TalkOffsets offsets = {
      left.data(),
      c.causal ? nullptr : right.data(),
      StorageOf<O>::kValue};
  const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  TalkResult<S, O> result;
  Shifted<S> y(garbage<S>(c.B * c.T * c.C()), shift), grad_x = y;
  result.grad_left = garbage<O>(c.B * c.T * c.H);
  if (!c.causal)
    result.grad_right = result.grad_left;
  run_talk_forward<S>(
      launcher,
      {.shape = c.shape(),
       .offsets = offsets,
       .lengths = lengths,
       .x = x.data(),
       .y = y.data()});
  auto workspace = garbage<int32_t>(talk_workspace(c.shape()));
  run_talk_backward<S>(
      launcher,
      {.shape = c.shape(),
       .offsets = offsets,
       .lengths = lengths,
       .x = x.data(),
       .grad_y = grad_y.data(),
       .grad_x = grad_x.data(),
       .grad_left = result.grad_left.data(),
       .grad_right = c.causal ? nullptr : result.grad_right.data(),
       .workspace = workspace.data()});
  result.y = y.values();
  result.grad_x = grad_x.values();
  return result;
}

TalkResult<double, double> reference(
    const TalkCase& c,
    const TalkValues& values) {
  const Execution run = {kernels::testing::serial};
  const double* const right = c.causal ? nullptr : values.right.data();
  const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  TalkResult<double, double> result = {
      std::vector<double>(values.x.size()),
      std::vector<double>(values.x.size()),
      std::vector<double>(values.left.size()),
      std::vector<double>(c.causal ? 0 : values.left.size())};
  kernels::talk_forward<double, double>(
      {.shape = c.shape(),
       .x = values.x.data(),
       .offset_left = values.left.data(),
       .offset_right = right,
       .lengths = lengths,
       .y = result.y.data()},
      run);
  kernels::talk_backward<double, double>(
      {.shape = c.shape(),
       .x = values.x.data(),
       .offset_left = values.left.data(),
       .offset_right = right,
       .lengths = lengths,
       .grad_y = values.grad_y.data(),
       .grad_x = result.grad_x.data(),
       .grad_offset_left = result.grad_left.data(),
       .grad_offset_right = c.causal ? nullptr : result.grad_right.data()},
      run);
  return result;
}

template <class S, class O>
void expect_reference(const TalkCase& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const TalkValues values(c);
  const auto want = reference(c, values);
  const auto got = run_on_host<S, O>(c, values, /*backwards=*/false);
  EXPECT_LE(error_of(got.y, want.y), bound<S>()) << "y";
  EXPECT_LE(error_of(got.grad_x, want.grad_x), bound<S>()) << "grad_x";
  EXPECT_LE(error_of(got.grad_left, want.grad_left), bound<O>()) << "left";
  EXPECT_LE(error_of(got.grad_right, want.grad_right), bound<O>()) << "right";
  const auto again = run_on_host<S, O>(c, values, /*backwards=*/true);
  EXPECT_TRUE(same_bits(got.y, again.y)) << "y in another order";
  EXPECT_TRUE(same_bits(got.grad_x, again.grad_x));
  EXPECT_TRUE(same_bits(got.grad_left, again.grad_left));
  EXPECT_TRUE(same_bits(got.grad_right, again.grad_right));
}

void expect_in_all_types(const TalkCase& c) {
  expect_reference<double, double>(c);
  expect_reference<float, float>(c);
  expect_reference<BFloat16, BFloat16>(c);
  expect_reference<BFloat16, float>(c);
  expect_reference<Float16, Float16>(c);
  expect_reference<Float16, float>(c);
}

TEST(CudaTalkOnHost, EqualsTheCpuOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kHeads[] = {
      {1, 5},
      {3, 2},
      {4, 3},
      {8, 2},
      {60, 1},
      {64, 1},
      {128, 1},
      {1, 40},
      {2, 33},
      {16, 5},
      {6, 3},
      {100, 1},
      {32, 3}};
  size_t turn = 0;
  for (const int64_t T : {1, 2, 31, 64, 129, 151})
    for (const auto& [left, right] :
         {std::pair<int64_t, int64_t>{0, 0},
          {1, 3},
          {7, 0},
          {31, 15},
          {100, 90}})
      for (const bool causal : {false, true}) {
        TalkCase c = {.B = 2, .T = T};
        std::tie(c.R, c.H) = kHeads[turn++ % std::size(kHeads)];
        c.max_left = left;
        c.max_right = right;
        c.causal = causal;
        expect_in_all_types(c);
      }
}

TEST(CudaTalkOnHost, WindowsMayExceedTheMaximumAfterOffsetDropout) {
  // Beyond what a block keeps prefix sums of, and beyond the next tile.
  for (const bool causal : {false, true})
    for (const double largest : {2.0, 9.0})
      expect_in_all_types(
          {.T = 200,
           .R = 6,
           .max_left = 15,
           .max_right = 7,
           .causal = causal,
           .largest = largest});
}

TEST(CudaTalkOnHost, EqualsTheCpuWithLengths) {
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{150, 0, 13}, {64, 65, 1}})
    expect_in_all_types(
        {.B = 3,
         .T = 150,
         .H = 3,
         .R = 4,
         .max_left = 9,
         .max_right = 5,
         .lengths = lengths});
}

TEST(CudaTalkOnHost, EmptyBatchesAndSequencesAreNoWork) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}})
    expect_in_all_types({.B = B, .T = T});
}

TEST(CudaTalkOnHost, PaddingIsNeverLookedAt) {
  const TalkCase c = {
      .B = 1,
      .T = 70,
      .H = 2,
      .R = 4,
      .max_left = 9,
      .max_right = 12,
      .lengths = {40}};
  TalkValues values(c);
  const auto want = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (auto* const list :
       {&values.x, &values.left, &values.right, &values.grad_y})
    for (size_t i = list->size() / 70 * 40; i < list->size(); ++i)
      (*list)[i] = NAN;
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_TRUE(same_bits(got.y, want.y));
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
  EXPECT_TRUE(same_bits(got.grad_left, want.grad_left));
  EXPECT_TRUE(same_bits(got.grad_right, want.grad_right));
}

TEST(CudaTalkOnHost, ANanInAnOffsetShowsInItsOutputs) {
  const TalkCase c = {.B = 1, .T = 9, .H = 2, .R = 3};
  TalkValues values(c);
  values.left[4 * 2] = NAN;
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (int64_t i = 0; i < c.T * c.C(); ++i)
    EXPECT_EQ(
        std::isnan(got.y[static_cast<size_t>(i)]),
        i / c.C() == 4 && i % c.C() < 3)
        << i;
}

TEST(CudaTalkOnHost, TheErrorDoesNotGrowWithTheLengthOfTheSequence) {
  const TalkCase c =
      {.B = 1, .T = 20000, .H = 1, .R = 2, .max_left = 31, .max_right = 31};
  TalkValues values(c);
  for (double& value : values.x)
    value = narrowed<float>({value + 1})[0];
  const auto want = reference(c, values);
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_LE(error_of(got.y, want.y), 1e-6);
}

/// The vectors that a kernel is run with.
template <class S, int kBytes>
int vector_of(int64_t head_channels, const void* x, const void* y) {
  int chosen = 0;
  with_vector<S, kBytes>(head_channels, {x, y}, [&](auto v) { chosen = v; });
  return chosen;
}

TEST(CudaTalkOnHost, VectorsAreAsLongAsHeadsAndAddressesAllow) {
  alignas(16) char at[32];
  EXPECT_EQ((vector_of<BFloat16, 16>(64, at, at)), 8);
  EXPECT_EQ((vector_of<BFloat16, 16>(60, at, at)), 4);
  EXPECT_EQ((vector_of<Float16, 16>(64, at, at + 8)), 4);
  EXPECT_EQ((vector_of<Float16, 16>(64, at + 4, at)), 2);
  EXPECT_EQ((vector_of<Float16, 16>(64, at + 2, at)), 1);
  EXPECT_EQ((vector_of<BFloat16, 8>(64, at, at)), 4);
  EXPECT_EQ((vector_of<float, 16>(8, at, at)), 4);
  EXPECT_EQ((vector_of<float, 16>(6, at, at)), 2);
  EXPECT_EQ((vector_of<float, 16>(7, at, at)), 1);
  EXPECT_EQ((vector_of<double, 16>(64, at, at)), 1);
}

template <class S>
void expect_same_bits_wherever(const TalkCase& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const auto values = TalkValues::inexact(c);
  const auto want = run_on_host<S, S>(c, values, /*backwards=*/false);
  for (const size_t shift : {1, 2, 4, 8}) {
    SCOPED_TRACE(shift);
    const auto got = run_on_host<S, S>(c, values, false, shift);
    EXPECT_TRUE(same_bits(got.y, want.y));
    EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
    EXPECT_LE(error_of(got.grad_left, widened(want.grad_left)), bound<S>());
    EXPECT_LE(error_of(got.grad_right, widened(want.grad_right)), bound<S>());
  }
}

TEST(CudaTalkOnHost, TensorsMayStartAnywhere) {
  // With fewer channels to a thread where addresses ask for it: the same sums.
  for (const int64_t R : {8, 16, 64, 100})
    for (const double largest : {1.0, 9.0}) {
      const TalkCase c = {
          .T = 150,
          .R = R,
          .max_left = 21,
          .max_right = 7,
          .largest = largest};
      expect_same_bits_wherever<BFloat16>(c);
      expect_same_bits_wherever<Float16>(c);
      expect_same_bits_wherever<float>(c);
      expect_same_bits_wherever<double>(c);
    }
}

TEST(CudaTalkOnHost, WhatFollowsLeavesNoTrace) {
  const TalkCase c =
      {.B = 1, .T = 200, .H = 3, .R = 8, .max_left = 40, .causal = true};
  const auto values = TalkValues::inexact(c);
  const auto want = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (const int64_t T : {5, 64, 79, 131}) {
    TalkCase shorter = c;
    shorter.T = T;
    TalkValues first = values;
    for (auto* const list :
         {&first.x, &first.grad_y, &first.left, &first.right})
      list->resize(list->size() / 200 * static_cast<size_t>(T));
    const auto got =
        run_on_host<float, float>(shorter, first, /*backwards=*/false);
    auto same = want.y;
    same.resize(got.y.size());
    EXPECT_TRUE(same_bits(got.y, same)) << T;
  }
}

/// One window far longer than the others moves the first row that a tile looks
/// at: the sums of the other windows must not notice.
TEST(CudaTalkOnHost, WindowsDoNotNoticeTheirNeighbours) {
  for (const int64_t R : {3, 4, 8, 64}) {
    const TalkCase c =
        {.B = 1, .T = 200, .H = 1, .R = R, .max_left = 60, .causal = true};
    auto values = TalkValues::inexact(c);
    for (double& left : values.left)
      left /= 16;
    const auto want = run_on_host<float, float>(c, values, false);
    values.left[150] = 1;
    const auto got = run_on_host<float, float>(c, values, false);
    for (int64_t i = 0; i < c.T * R; ++i)
      if (i / R != 150) {
        ASSERT_EQ(got.y[static_cast<size_t>(i)], want.y[static_cast<size_t>(i)])
            << i;
      }
  }
}

template <class S>
void expect_nan_stays_in_its_segment(int64_t R) {
  SCOPED_TRACE(R);
  const TalkCase c =
      {.B = 1, .T = 200, .H = 1, .R = R, .max_left = 20, .max_right = 20};
  TalkValues values(c);
  const auto want = run_on_host<S, S>(c, values, /*backwards=*/false);
  const int64_t bad = 70, end = 80;  // the row, and its segment's end
  values.x[static_cast<size_t>(bad * R + R - 1)] = NAN;
  const auto got = run_on_host<S, S>(c, values, /*backwards=*/false);
  for (int64_t t = 0; t < c.T; ++t) {
    const auto at = static_cast<size_t>(t);
    const auto w = talk_window<double>(
        static_cast<int>(t),
        200,
        values.left[at] * 20,
        values.right[at] * 20);
    for (int64_t r = 0; r < R; ++r) {
      const auto i = static_cast<size_t>(t * R + r);
      const bool looks = w.left_row() <= bad && bad <= w.right_row();
      if (looks && r == R - 1) {
        EXPECT_NE(widen(got.y[i]), widen(got.y[i])) << t;
      } else if (r < R - 1 || w.right_row() < bad || w.left_row() >= end) {
        EXPECT_EQ(widen(got.y[i]), widen(want.y[i])) << t;
      }
    }
  }
}

TEST(CudaTalkOnHost, ANanInARowShowsInItsWindowsAndItsSegmentsAlone) {
  for (const int64_t R : {1, 6, 4, 8, 64}) {
    expect_nan_stays_in_its_segment<float>(R);
    expect_nan_stays_in_its_segment<BFloat16>(R);
  }
}

/// The sequence in chunks through the step form.
template <class S>
std::vector<S>
stepped(const TalkCase& c, const TalkValues& values, int64_t chunk) {
  HostLauncher launcher;
  const auto x = narrowed<S>(values.x);
  const auto left = narrowed<float>(values.left);
  const int64_t C = c.C();
  const auto slots = static_cast<int64_t>(
      std::ceil(static_cast<double>(c.max_left) * c.largest));
  std::vector<S> y = garbage<S>(c.B * c.T * C);
  std::vector<S> state(static_cast<size_t>(c.B * slots * C));
  for (int64_t t = 0; t < c.T; t += chunk) {
    const int64_t count = std::min(chunk, c.T - t);
    std::vector<S> in, out = garbage<S>(c.B * count * C);
    std::vector<float> offsets;
    for (int64_t b = 0; b < c.B; ++b) {
      const auto at = x.begin() + (b * c.T + t) * C;
      in.insert(in.end(), at, at + count * C);
      const auto o = left.begin() + (b * c.T + t) * c.H;
      offsets.insert(offsets.end(), o, o + count * c.H);
    }
    TalkShape shape = c.shape();
    shape.steps = count;
    run_talk_step<S>(
        launcher,
        {.shape = shape,
         .offsets = {offsets.data(), nullptr, Storage::kFloat},
         .x = in.data(),
         .state = state.data(),
         .slots = slots,
         .position = &t,
         .y = out.data()});
    for (int64_t b = 0; b < c.B; ++b)
      std::copy_n(
          out.begin() + b * count * C,
          count * C,
          y.begin() + (b * c.T + t) * C);
  }
  return y;
}

TEST(CudaTalkOnHost, StepsOfAnySizeEqualTheFullForm) {
  for (const double largest : {1.0, 2.0})
    for (const int64_t max_left : {0, 1, 3, 31, 100})
      for (const int64_t chunk : {1, 2, 33, 70}) {
        const TalkCase c = {
            .T = 70,
            .R = 5,
            .max_left = max_left,
            .causal = true,
            .largest = largest};
        SCOPED_TRACE(::testing::PrintToString(c));
        const TalkValues values(c);
        const auto want = reference(c, values);
        EXPECT_LE(
            error_of(stepped<float>(c, values, chunk), want.y),
            bound<float>());
        EXPECT_LE(
            error_of(stepped<BFloat16>(c, values, chunk), want.y),
            bound<BFloat16>());
      }
}

}  // namespace
}  // namespace seqconv::kernels::cuda::testing
