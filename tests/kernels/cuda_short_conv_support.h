#pragma once

#include <algorithm>
#include <array>
#include <ostream>

#include "kernels/cuda/short_conv/run.h"
#include "kernels/cuda_support.h"
#include "kernels/plain_short_conv.h"
#include "support/draws.h"
#include "support/rounds.h"

/// A short convolution by the device's kernels on the host, beside loops of doubles.
namespace seqconv::internal::kernels::cuda::testing {

using kernels::testing::PlainShortConv;

/// Numbers of sequences are packed ones in `plain`, padding ones of which nothing is real.
struct ShortCase {
  PlainShortConv plain;
  int64_t batch = 1, steps = 0;     ///< B and T of x
  std::vector<int64_t> numbers;     ///< [B, T] or none
  std::vector<int64_t> beginnings;  ///< of numbers: the sequences that begin rows
  bool wide = false;                ///< taps and bias in float beside 16-bit x
  size_t shift = 0;                 ///< elements of x and of results off an aligned address
  bool wants_x = true, wants_weight = true, wants_dynamic = true, wants_bias = true,
       wants_past = true;

  int64_t rows() const { return batch * steps; }
  /// The sequences that have inputs before, of all in `plain`.
  std::vector<int64_t> states() const {
    if (!numbers.empty())
      return beginnings;
    std::vector<int64_t> all;
    for (int64_t b = 0; b < plain.shape.batch; ++b)
      all.push_back(b);
    return all;
  }
  /// [sequences, (K-1) D, C] of those in `plain` that states() names.
  std::vector<double> of_states(const std::vector<double>& all) const {
    std::vector<double> some;
    const int64_t size = plain.reach() * plain.shape.channels;
    if (!all.empty())
      for (const int64_t i : states())
        some.insert(some.end(), all.begin() + i * size, all.begin() + (i + 1) * size);
    return some;
  }
};

inline std::ostream& operator<<(std::ostream& out, const ShortCase& c) {
  const PlainShortConv& p = c.plain;
  return out << "B " << c.batch << " T " << c.steps << " C " << p.shape.channels << " G "
             << p.groups << " H " << p.shape.heads << " dynamic " << p.dynamic << " K "
             << p.shape.kernel_size << " P " << p.shape.padding_left << " D " << p.shape.dilation
             << " bias " << p.bias << " past " << p.past << " silu "
             << (p.end.activation == ConvActivation::kSilu) << " residual " << p.end.residual
             << " lengths " << p.lengths.size() << " offsets " << p.offsets.size() << " numbers "
             << c.numbers.size() << " wide " << c.wide << " shift " << c.shift;
}

/// A tensor beside x of S, and what stands for it.
template <class S>
class BesideValues {
 public:
  BesideValues(const std::vector<double>& values, bool wide)
      : narrow_(narrowed<S>(values)), wide_(narrowed<float>(values)), is_wide_(wide) {}
  static BesideValues of_garbage(size_t count, bool wide) {
    BesideValues result({}, wide);
    result.narrow_ = garbage<S>(static_cast<int64_t>(count));
    result.wide_ = garbage<float>(static_cast<int64_t>(count));
    return result;
  }
  Beside get() {
    if (wide_.empty())
      return {};
    return is_wide_ ? Beside{wide_.data(), Storage::kFloat}
                    : Beside{narrow_.data(), StorageOf<S>::kValue};
  }
  void* data() { return const_cast<void*>(get().data); }
  std::vector<double> values() const { return is_wide_ ? widened(wide_) : widened(narrow_); }

 private:
  std::vector<S> narrow_;
  std::vector<float> wide_;
  bool is_wide_;
};

template <class T>
T* pointer(std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

template <class S>
struct ShortResult {
  std::vector<S> y, grad_x, grad_past;
  std::vector<float> grad_weight, grad_bias;
  std::vector<double> grad_dynamic;
};

/// Taps, the bias and sequences of a case as kernels take them.
template <class S>
struct ShortValues {
  BesideValues<S> weight, dynamic, bias;
  std::vector<int64_t> lengths, offsets, numbers;
  ShortConvSetup setup;

  explicit ShortValues(const ShortCase& c)
      : weight(c.plain.static_taps, c.wide),
        dynamic(c.plain.dynamic_taps, c.wide),
        bias(c.plain.bias_values, c.wide),
        numbers(c.numbers) {
    if (numbers.empty()) {
      lengths = c.plain.lengths;
      offsets = c.plain.offsets;
    }
    setup.shape = c.plain.shape;
    setup.shape.batch = c.batch;
    setup.shape.steps = c.steps;
    if (!c.plain.dynamic)
      setup.shape.heads = 1;
    setup.groups = std::max<int64_t>(1, c.plain.groups);
    setup.weight = weight.get();
    setup.dynamic = dynamic.get();
    setup.bias = bias.get();
    setup.end = c.plain.end;
    setup.lengths = pointer(lengths);
    setup.offsets = pointer(offsets);
    setup.sequences = offsets.empty() ? 0 : c.plain.shape.batch;
    setup.numbers = pointer(numbers);
  }
};

template <class S>
ShortResult<S> run_on_host(const ShortCase& c, bool backwards = false) {
  HostLauncher launcher(backwards);
  ShortValues<S> values(c);
  const PlainShortConv& plain = c.plain;
  const int64_t C = plain.shape.channels, count = c.rows() * C;
  Shifted<S> x(narrowed<S>(plain.x), c.shift), y(garbage<S>(count), c.shift),
      grad_x(garbage<S>(count), c.shift);
  auto grad_y = narrowed<S>(plain.grad_y), past = narrowed<S>(c.of_states(plain.before));
  ShortConvForward<S> forward = {
      .setup = values.setup, .x = x.data(), .past = pointer(past), .y = y.data()};
  auto room = garbage<std::array<double, 2>>(forward_workspace(forward) / 16);
  forward.workspace = room.data();
  run(launcher, forward);

  ShortResult<S> result;
  result.grad_past = garbage<S>(static_cast<int64_t>(past.size()));
  result.grad_weight = garbage<float>(static_cast<int64_t>(plain.static_taps.size()));
  result.grad_bias = garbage<float>(static_cast<int64_t>(plain.bias_values.size()));
  auto grad_dynamic = BesideValues<S>::of_garbage(plain.dynamic_taps.size(), c.wide);
  ShortConvBackward<S> backward = {
      .setup = values.setup,
      .x = x.data(),
      .past = pointer(past),
      .grad_y = grad_y.data(),
      .grad_x = c.wants_x ? grad_x.data() : nullptr,
      .grad_weight = c.wants_weight ? pointer(result.grad_weight) : nullptr,
      .grad_dynamic = c.wants_dynamic ? grad_dynamic.data() : nullptr,
      .grad_bias = c.wants_bias ? pointer(result.grad_bias) : nullptr,
      .grad_past = c.wants_past ? pointer(result.grad_past) : nullptr};
  room = garbage<std::array<double, 2>>(backward_workspace(backward) / 16);
  backward.workspace = room.data();
  run(launcher, backward);
  result.y = y.values();
  result.grad_x = grad_x.values();
  result.grad_dynamic = grad_dynamic.values();
  return result;
}

/// Draws cases: every option with every other one.
class ShortCases : public internal::testing::Draws {
 public:
  using Draws::Draws;

  ShortCase draw() {
    ShortCase c;
    PlainShortConv& p = c.plain;
    const auto R = one_of<int64_t>({1, 2, 3, 4, 8, 16, 20, 66, 130});
    const int64_t C = R * number(1, R < 16 ? 9 : 2),
                  K = one_of<int64_t>({1, 2, 3, 4, 4, 5, 8, 9, 17, 40});
    c.batch = number(1, 3);
    c.steps = number(0, 5) == 0 ? number(60, 140) : number(0, 30);
    p.shape = {
        .channels = C,
        .heads = 1,
        .kernel_size = K,
        .padding_left = K - 1,
        .dilation = coin() ? 1 : one_of<int64_t>({2, 3, 5, 9, 1000})};
    p.past = p.shape.dilation < 1000 && coin();
    if (!p.past && coin())
      p.shape.padding_left = number(0, K - 1);
    p.dynamic = coin();
    const auto kernels = [&] { return one_of<int64_t>({1, C / R, C}); };
    p.groups = p.dynamic && coin() ? 0 : kernels();
    if (p.dynamic)
      p.shape.heads = kernels();
    p.bias = coin();
    p.end = {coin() ? ConvActivation::kSilu : ConvActivation::kNone, coin()};
    c.wide = coin();
    c.shift = coin() ? 0 : 1;
    draw_rows(c);
    draw_values(c);
    return c;
  }

  /// Numbers of a case whose sizes are set, and its results.
  void draw_values(ShortCase& c) {
    PlainShortConv& p = c.plain;
    p.draw(random_);
    for (auto* const values :
         {&p.x, &p.grad_y, &p.static_taps, &p.dynamic_taps, &p.bias_values, &p.before})
      for (double& value : *values)
        value = std::round(value * 32) / 32;  // both 16-bit types hold it
    const auto size = static_cast<size_t>(p.reach() * p.shape.channels);
    for (size_t i = 0; !c.numbers.empty() && i < p.before.size(); ++i)
      if (std::count(c.beginnings.begin(), c.beginnings.end(), static_cast<int64_t>(i / size)) == 0)
        p.before[i] = 0;
    p.run();
  }

  void draw_rows(ShortCase& c) {
    PlainShortConv& p = c.plain;
    p.shape.batch = c.batch;
    p.shape.steps = c.steps;
    switch (number(0, 3)) {
      case 0:
        for (int64_t b = 0; b < c.batch; ++b)
          p.lengths.push_back(number(0, c.steps));
        return;
      case 1:
        p.offsets = {0};
        for (int64_t b = 0; b < c.batch; ++b)
          p.offsets.push_back(p.offsets.back() + (coin() ? number(0, c.steps) : number(0, 3)));
        p.shape.steps = c.steps = p.offsets.back();
        c.batch = 1;
        return;
      case 2:
        if (c.steps > 0)
          draw_numbers(c);
        return;
      default:
        return;
    }
  }

 private:
  void draw_numbers(ShortCase& c) {
    PlainShortConv& p = c.plain;
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t t = 0, is = 0; t < c.steps; ++t) {
        const bool is_next = t > 0 && number(0, 5) == 0;
        if (t == 0 || is_next)
          is = number(0, 4) == 0 ? -number(1, 2) : 100 * b + t;
        const bool is_new = t == 0 || is != c.numbers.back();
        c.numbers.push_back(is);
        if (t == 0)
          c.beginnings.push_back(static_cast<int64_t>(p.offsets.size()));
        if (is_new) {
          p.offsets.push_back(b * c.steps + t);
          p.lengths.push_back(0);
        }
        p.lengths.back() += is < 0 ? 0 : 1;
      }
    p.offsets.push_back(c.rows());
    p.shape.batch = static_cast<int64_t>(p.lengths.size());
    p.shape.steps = c.rows();
  }
};

}  // namespace seqconv::internal::kernels::cuda::testing
