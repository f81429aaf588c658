#pragma once

#include <ATen/ATen.h>

#include <ostream>
#include <vector>

#include "seqconv/ops/short_conv.h"
#include "support/draws.h"

/// Cases of short_conv that are drawn: every option with every other one.
namespace seqconv::ops {

/// Sizes and options; 0 groups or heads: no such taps.
struct ShortConvCase {
  int64_t batch = 1, steps = 1, channels = 1, groups = 1, heads = 0, kernel_size = 1;
  bool bias = false, state = false;
  enum class Rows { kAll, kLengths, kPacked, kNumbered } rows = Rows::kAll;
  ShortConvOptions options;
  std::vector<int64_t> ends;  ///< of kLengths the lengths, else the ends of packed ones

  int64_t past() const { return (kernel_size - 1) * options.dilation; }
  int64_t sequences() const {
    return rows == Rows::kPacked ? static_cast<int64_t>(ends.size()) : batch;
  }

  /// x, weight, dynamic, bias and initial state; those that are not there undefined.
  std::vector<at::Tensor> inputs() const {
    const auto draw = [](bool there, at::IntArrayRef sizes) {
      return there ? at::randn(sizes, at::kDouble).to(at::kBFloat16).to(at::kDouble) : at::Tensor();
    };
    std::vector<int64_t> at = {batch, steps};
    if (rows == Rows::kPacked)
      at = {batch * steps};
    std::vector<int64_t> x = at, dynamic = at;
    x.push_back(channels);
    dynamic.insert(dynamic.end(), {heads, kernel_size});
    return {
        draw(true, x),
        draw(groups > 0, {groups, kernel_size}),
        draw(heads > 0, dynamic),
        draw(bias, {channels}),
        draw(state, {sequences(), past(), channels})};
  }

  /// The options with these inputs.
  ShortConvOptions with(const std::vector<at::Tensor>& in) const {
    const auto given = [](const at::Tensor& tensor) {
      return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
    };
    ShortConvOptions all = options;
    all.weight = given(in[1]);
    all.dynamic = given(in[2]);
    all.bias = given(in[3]);
    all.initial_state = given(in[4]);
    return all;
  }
};

inline std::ostream& operator<<(std::ostream& out, const ShortConvCase& c) {
  return out << "B " << c.batch << " T " << c.steps << " C " << c.channels << " G " << c.groups
             << " H " << c.heads << " K " << c.kernel_size << " D " << c.options.dilation
             << " left " << c.options.padding_left.value_or(-1) << " bias " << c.bias << " state "
             << c.state << " rows " << static_cast<int>(c.rows) << " normalization "
             << static_cast<int>(c.options.normalization) << " renormalized "
             << c.options.renormalize_edges << " drop " << c.options.drop.p << " silu "
             << (c.options.activation == ConvActivation::kSilu) << " residual "
             << c.options.residual;
}

/// Draws cases.
class ShortConvCases : public internal::testing::Draws {
 public:
  using Draws::Draws;

  ShortConvCase draw() {
    ShortConvCase c;
    c.batch = number(1, 3);
    c.steps = one_of<int64_t>({1, 2, 3, 5, 17, 40, 70, 130});
    c.kernel_size = one_of<int64_t>({1, 2, 3, 4, 5, 7, 8, 9, 17, 31, 70});
    const int64_t R = one_of<int64_t>({1, 2, 3, 4, 8, 16, 24, 64});
    c.channels = R * number(1, R < 16 ? 12 : 3);
    const auto divisor = [&] {
      const int64_t d = number(1, c.channels);
      return c.channels % d == 0 ? d : c.channels / R;
    };
    const int64_t kind = number(0, 2);
    c.groups = kind == 1 ? 0 : divisor();
    c.heads = kind == 0 ? 0 : divisor();
    c.bias = coin();
    c.options.dilation = coin() ? 1 : one_of<int64_t>({2, 3, 7});
    c.options.activation = coin() ? ConvActivation::kSilu : ConvActivation::kNone;
    c.options.residual = coin();
    if (kind != 2 && coin()) {
      c.options.normalization =
          one_of<Normalization>({Normalization::kSoftmax, Normalization::kTanh});
      c.options.renormalize_edges = c.options.normalization == Normalization::kSoftmax && coin();
    }
    if (number(0, 3) == 0)
      c.options.drop = {.p = 0.3, .seed = at::tensor(number(0, 1000), at::kLong)};
    c.state = coin();
    if (!c.state && coin())
      c.options.padding_left = number(0, c.kernel_size - 1);
    draw_rows(c);
    return c;
  }

 private:
  void draw_rows(ShortConvCase& c) {
    using Rows = ShortConvCase::Rows;
    c.rows = one_of<Rows>({Rows::kAll, Rows::kLengths, Rows::kPacked, Rows::kNumbered});
    if (c.rows == Rows::kLengths) {
      for (int64_t b = 0; b < c.batch; ++b)
        c.ends.push_back(number(0, c.steps));
      c.options.lengths = at::tensor(c.ends, at::kLong);
    } else if (c.rows == Rows::kPacked) {
      const int64_t all = c.batch * c.steps;
      std::vector<int64_t> offsets = {0};
      while (offsets.back() < all || offsets.size() < 2)
        offsets.push_back(std::min(all, offsets.back() + number(0, c.steps)));
      c.ends.assign(offsets.begin() + 1, offsets.end());
      c.options.cu_seqlens = at::tensor(offsets, at::kLong).to(coin() ? at::kInt : at::kLong);
    } else if (c.rows == Rows::kNumbered) {
      const at::Tensor numbers = at::empty({c.batch, c.steps}, at::kLong);
      for (int64_t b = 0; b < c.batch; ++b)
        for (int64_t t = 0, is = 100 + b; t < c.steps; ++t) {
          if (number(0, 9) == 0)
            is = number(0, 3) == 0 ? -number(1, 2) : 1000 - t;
          numbers[b][t] = is;
        }
      c.options.seq_idx = numbers.to(coin() ? at::kInt : at::kLong);
    }
  }
};

}  // namespace seqconv::ops
