#pragma once

#include <ostream>

#include "kernels/cuda/talk/run.h"
#include "kernels/cuda_support.h"
#include "kernels/parallel.h"

/// Runs the TaLK kernels of the device on the host and compares them with the
/// CPU's.
namespace seqconv::internal::kernels::cuda::testing {
struct TalkCase {
  int64_t B = 2, T = 5, H = 2, R = 4;
  int64_t max_left = 3, max_right = 2;
  bool causal = false;
  double largest = 1;
  std::vector<int64_t> lengths;
  Device device;
  bool wants_x = true, wants_offsets = true;  ///< gradients

  int64_t C() const { return H * R; }
  TalkShape shape() const { return {B, T, C(), H, max_left, causal ? 0 : max_right}; }
};

inline std::ostream& operator<<(std::ostream& out, const TalkCase& c) {
  return out << "B " << c.B << " T " << c.T << " H " << c.H << " R " << c.R << " left "
             << c.max_left << " right " << c.max_right << (c.causal ? " causal" : "") << " largest "
             << c.largest << (c.lengths.empty() ? "" : " lengths") << " of " << c.device.shared;
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
    for (auto* const list : {&values.x, &values.grad_y, &values.left, &values.right})
      for (double& value : *list)
        value /= 1.1;
    return values;
  }

  /// Multiples of 1/256, some of them whole positions, exact in 16 bits.
  static std::vector<double> offsets(const TalkCase& c, int64_t step) {
    std::vector<double> result;
    for (int64_t i = 0; i < c.B * c.T * c.H; ++i)
      result.push_back(static_cast<double>((i * 97 + step * step) % 257) / 256 * c.largest);
    return widened(narrowed<BFloat16>(result));
  }
};

template <class S, class O>
struct TalkResult {
  std::vector<S> y, grad_x;
  std::vector<O> grad_left, grad_right;
};

template <class S, class O>
TalkResult<S, O> run_on_host(
    const TalkCase& c, const TalkValues& values, bool backwards, size_t shift = 0) {
  HostLauncher launcher(backwards, c.device);
  Shifted<S> x(narrowed<S>(values.x), shift);
  Shifted<S> grad_y(narrowed<S>(values.grad_y), shift);
  const auto left = narrowed<O>(values.left), right = narrowed<O>(values.right);
  const TalkOffsets offsets = {
      left.data(), c.causal ? nullptr : right.data(), StorageOf<O>::kValue};
  const int64_t* const lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  TalkResult<S, O> result;
  Shifted<S> y(garbage<S>(c.B * c.T * c.C()), shift), grad_x = y;
  result.grad_left = garbage<O>(c.B * c.T * c.H);
  if (!c.causal)
    result.grad_right = result.grad_left;
  run(launcher,
      TalkForward<S>{
          .shape = c.shape(),
          .offsets = offsets,
          .lengths = lengths,
          .x = x.data(),
          .y = y.data()});
  auto workspace = garbage<int32_t>(talk_workspace(c.shape()));
  run(launcher,
      TalkBackward<S>{
          .shape = c.shape(),
          .offsets = offsets,
          .lengths = lengths,
          .x = x.data(),
          .grad_y = grad_y.data(),
          .grad_x = c.wants_x ? grad_x.data() : nullptr,
          .grad_left = c.wants_offsets ? result.grad_left.data() : nullptr,
          .grad_right = c.causal || !c.wants_offsets ? nullptr : result.grad_right.data(),
          .workspace = workspace.data()});
  result.y = y.values();
  result.grad_x = grad_x.values();
  return result;
}

inline TalkResult<double, double> reference(const TalkCase& c, const TalkValues& values) {
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
void expect_result(
    const TalkCase& c, const TalkValues& values, const TalkResult<double, double>& want) {
  SCOPED_TRACE(
      ::testing::Message() << c << " storage " << static_cast<int>(StorageOf<S>::kValue)
                           << " offsets " << static_cast<int>(StorageOf<O>::kValue));
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

inline void expect_talk_in_all_types(const TalkCase& c) {
  const TalkValues values(c);
  const auto want = reference(c, values);
  seqconv::internal::testing::in_turn(
      c.T + c.max_left / 2,
      [&] { expect_result<float, float>(c, values, want); },
      [&] { expect_result<BFloat16, BFloat16>(c, values, want); },
      [&] { expect_result<BFloat16, float>(c, values, want); },
      [&] { expect_result<Float16, Float16>(c, values, want); },
      [&] { expect_result<Float16, float>(c, values, want); });
}

}  // namespace seqconv::internal::kernels::cuda::testing
