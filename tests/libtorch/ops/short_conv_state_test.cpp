#include <gtest/gtest.h>

#include "base/error.h"
#include "libtorch/ops/short_conv_case.h"
#include "support/gradients.h"

/// States of short_conv: pieces, packed sequences, steps and inputs that are taken
/// back give the bits of the whole.
namespace seqconv::ops {
using namespace internal;
namespace {

/// A drawn causal case of whole sequences, of one type.
struct WholeCase {
  ShortConvCase c;
  std::vector<at::Tensor> in;

  WholeCase(ShortConvCases& cases, at::ScalarType type) : c(cases.draw()) {
    c.rows = ShortConvCase::Rows::kAll;
    c.ends.clear();
    c.state = false;
    c.options.padding_left.reset();
    c.options.lengths.reset();
    c.options.cu_seqlens.reset();
    c.options.seq_idx.reset();
    c.options.drop = {};
    for (const at::Tensor& input : c.inputs())
      in.push_back(input.defined() ? input.to(type) : input);
  }

  /// Positions [first, first + length) of all rows.
  std::vector<at::Tensor> part(int64_t first, int64_t length) const {
    std::vector<at::Tensor> some = in;
    some[0] = in[0].narrow(1, first, length);
    if (in[2].defined())
      some[2] = in[2].narrow(1, first, length);
    return some;
  }

  at::Tensor whole() const { return short_conv(in[0], c.with(in)); }

  ShortConvStepOptions step_options(const std::vector<at::Tensor>& some) const {
    const ShortConvOptions all = c.with(some);
    return {
        .weight = all.weight,
        .dynamic = all.dynamic,
        .bias = all.bias,
        .dilation = all.dilation,
        .activation = all.activation,
        .residual = all.residual,
        .normalization = all.normalization,
        .renormalize_edges = all.renormalize_edges};
  }
};

constexpr at::ScalarType kStored[] = {at::kFloat, at::kBFloat16, at::kDouble};

// A softmax over the taps inside knows an initial state of zeros from none.
TEST(ShortConvState, PiecesOfAnyLengthsAreTheWhole) {
  at::manual_seed(1);
  ShortConvCases cases(11);
  for (int i = 0; i < 90; ++i) {
    WholeCase of(cases, kStored[i % 3]);
    of.c.options.renormalize_edges = false;
    SCOPED_TRACE(::testing::Message() << of.c);
    std::vector<at::Tensor> pieces;
    std::optional<at::Tensor> state;
    for (int64_t t = 0, length = 0; t < of.c.steps; t += length) {
      length = std::min(cases.number(1, 20), of.c.steps - t);
      ShortConvOptions options = of.c.with(of.part(t, length));
      options.initial_state = state;
      const at::Tensor x = of.in[0].narrow(1, t, length);
      pieces.push_back(short_conv(x, options));
      state = short_conv_final_state(
          x, of.c.kernel_size, {.dilation = of.c.options.dilation, .initial_state = state});
    }
    EXPECT_TRUE(at::equal(at::cat(pieces, 1), of.whole()));
    EXPECT_TRUE(at::equal(
        *state,
        short_conv_final_state(of.in[0], of.c.kernel_size, {.dilation = of.c.options.dilation})));
  }
}

TEST(ShortConvState, PackedSequencesAreThoseThatArePadded) {
  at::manual_seed(2);
  ShortConvCases cases(12);
  for (int i = 0; i < 90; ++i) {
    WholeCase of(cases, kStored[i % 3]);
    const ShortConvCase& c = of.c;
    SCOPED_TRACE(::testing::Message() << c);
    std::vector<int64_t> lengths, offsets = {0};
    for (int64_t b = 0; b < c.batch; ++b) {
      lengths.push_back(cases.number(0, c.steps));
      offsets.push_back(offsets.back() + lengths.back());
    }
    const auto pack = [&](const at::Tensor& padded) {
      std::vector<at::Tensor> rows;
      for (int64_t b = 0; b < c.batch; ++b)
        rows.push_back(padded[b].narrow(0, 0, lengths[static_cast<size_t>(b)]));
      return at::cat(rows);
    };
    const bool with_state = c.past() > 0 && cases.coin();
    ShortConvOptions options = c.with(of.in);
    options.lengths = at::tensor(lengths, at::kLong);
    if (with_state)
      options.initial_state = at::randn({c.batch, c.past(), c.channels}).to(of.in[0].scalar_type());
    const at::Tensor padded = short_conv(of.in[0], options);
    const ShortConvStateOptions at_ends = {
        .dilation = options.dilation,
        .initial_state = options.initial_state,
        .lengths = options.lengths};
    const at::Tensor ends = short_conv_final_state(of.in[0], c.kernel_size, at_ends);
    options.lengths.reset();
    options.cu_seqlens = at::tensor(offsets, at::kLong).to(at::kInt);
    if (options.dynamic)
      options.dynamic = pack(*options.dynamic);
    const at::Tensor x = pack(of.in[0]);
    EXPECT_TRUE(at::equal(short_conv(x, options), pack(padded)));
    EXPECT_TRUE(at::equal(
        short_conv_final_state(
            x,
            c.kernel_size,
            {.dilation = options.dilation,
             .initial_state = options.initial_state,
             .cu_seqlens = options.cu_seqlens}),
        ends));
  }
}

/// Streams that are written token by token, some of which are taken back.
class Streams {
 public:
  Streams(const WholeCase& of, ShortConvCases& cases, int64_t rows, int64_t further)
      : of_(of),
        cases_(cases),
        further_(further),
        state_(short_conv_initial_state(
            rows,
            of.c.kernel_size,
            of.c.channels,
            of.in[0].options(),
            of.c.options.dilation,
            further)),
        tokens_(static_cast<size_t>(rows)),
        most_(tokens_.size()) {}

  /// Goes on with some rows, in any order, by numbers of inputs of their own.
  void go_on() {
    std::vector<int64_t> rows, lengths;
    for (int64_t m = 0; m < count(); ++m)
      if (cases_.coin())
        rows.insert(rows.begin() + cases_.number(0, static_cast<int64_t>(rows.size())), m);
    if (cases_.coin())
      rows.push_back(-1);
    const auto N = static_cast<int64_t>(rows.size());
    const int64_t steps = cases_.number(1, 5);
    for (int64_t n = 0; n < N; ++n)
      lengths.push_back(cases_.coin() ? steps : cases_.number(0, steps));
    if (N == 0)
      return;
    std::vector<at::Tensor> in = of_.in;
    const auto type = in[0].options();
    in[0] = at::randn({N, steps, of_.c.channels}).to(type);
    if (in[2].defined())
      in[2] = at::randn({N, steps, of_.c.heads, of_.c.kernel_size}).to(type);
    ShortConvStepOptions options = of_.step_options(in);
    options.state_indices = at::tensor(rows, at::kLong);
    options.lengths = at::tensor(lengths, at::kLong);
    const at::Tensor y = short_conv_step(in[0], state_, options);
    for (int64_t n = 0; n < N; ++n)
      keep(rows[static_cast<size_t>(n)], lengths[static_cast<size_t>(n)], in, y[n], n);
  }

  void take_back() {
    std::vector<int64_t> counts;
    for (size_t m = 0; m < tokens_.size(); ++m) {
      const auto now = static_cast<int64_t>(tokens_[m].size());
      const int64_t most = std::max<int64_t>(0, std::min(now, now - (most_[m] - further_)));
      counts.push_back(cases_.coin() ? 0 : cases_.number(0, most));
      tokens_[m].resize(tokens_[m].size() - static_cast<size_t>(counts[m]));
    }
    short_conv_rollback(
        state_, at::tensor(counts, at::kLong), of_.c.kernel_size, of_.c.options.dilation);
  }

  void expect_wholes() const {
    for (size_t m = 0; m < tokens_.size(); ++m) {
      if (tokens_[m].empty())
        continue;
      std::vector<at::Tensor> x, dynamic, y;
      for (const Token& token : tokens_[m]) {
        x.push_back(token.x);
        dynamic.push_back(token.dynamic);
        y.push_back(token.y);
      }
      std::vector<at::Tensor> in = of_.in;
      in[0] = at::stack(x).unsqueeze(0);
      if (in[2].defined())
        in[2] = at::stack(dynamic).unsqueeze(0);
      EXPECT_TRUE(at::equal(short_conv(in[0], of_.c.with(in))[0], at::stack(y))) << "row " << m;
      EXPECT_TRUE(at::equal(
          short_conv_last_inputs(state_, of_.c.past())[static_cast<int64_t>(m)],
          short_conv_final_state(
              in[0], of_.c.kernel_size, {.dilation = of_.c.options.dilation})[0]))
          << "state of row " << m;
    }
  }

 private:
  struct Token {
    at::Tensor x, dynamic, y;
  };

  int64_t count() const { return static_cast<int64_t>(tokens_.size()); }

  void keep(
      int64_t row,
      int64_t length,
      const std::vector<at::Tensor>& in,
      const at::Tensor& y,
      int64_t n) {
    EXPECT_FALSE(y.narrow(0, row < 0 ? 0 : length, y.size(0) - (row < 0 ? 0 : length))
                     .count_nonzero()
                     .item<bool>());
    if (row < 0)
      return;
    auto& tokens = tokens_[static_cast<size_t>(row)];
    for (int64_t t = 0; t < length; ++t)
      tokens.push_back({in[0][n][t], in[2].defined() ? in[2][n][t] : at::Tensor(), y[t]});
    auto& most = most_[static_cast<size_t>(row)];
    most = std::max(most, static_cast<int64_t>(tokens.size()));
  }

  const WholeCase& of_;
  ShortConvCases& cases_;
  int64_t further_;
  ShortConvState state_;
  std::vector<std::vector<Token>> tokens_;
  std::vector<int64_t> most_;
};

TEST(ShortConvState, StepsWithInputsTakenBackAreTheWhole) {
  at::manual_seed(3);
  ShortConvCases cases(13);
  for (int i = 0; i < 90; ++i) {
    const WholeCase of(cases, kStored[i % 3]);
    SCOPED_TRACE(::testing::Message() << of.c);
    Streams streams(of, cases, cases.number(1, 5), cases.number(0, 6));
    for (int turn = 0; turn < 12; ++turn) {
      streams.go_on();
      if (cases.coin())
        streams.take_back();
    }
    streams.expect_wholes();
  }
}

TEST(ShortConvState, GoesOnFromInputs) {
  at::manual_seed(4);
  ShortConvCases cases(14);
  for (int i = 0; i < 60; ++i) {
    WholeCase of(cases, kStored[i % 3]);
    of.c.options.renormalize_edges = false;
    SCOPED_TRACE(::testing::Message() << of.c);
    const int64_t first = cases.number(0, of.c.steps - 1);
    const at::Tensor inputs = short_conv_final_state(
        of.in[0].narrow(1, 0, first), of.c.kernel_size, {.dilation = of.c.options.dilation});
    ShortConvState state = short_conv_state_of(inputs, cases.number(0, 3));
    const auto rest = of.part(first, of.c.steps - first);
    const at::Tensor y = short_conv_step(rest[0], state, of.step_options(rest));
    EXPECT_TRUE(at::equal(y, of.whole().narrow(1, first, of.c.steps - first)));
  }
}

TEST(ShortConvState, FinalStatesAreDifferentiated) {
  at::manual_seed(5);
  for (const bool packed : {false, true})
    for (const int64_t T : {2, 9}) {
      const auto options = [&](const at::Tensor& initial) {
        ShortConvStateOptions all = {.dilation = 2, .initial_state = initial};
        if (packed)
          all.cu_seqlens = at::tensor({int64_t{0}, T - 1, T}, at::kInt);
        else
          all.lengths = at::tensor({T, T - 1}, at::kLong);
        return all;
      };
      const at::Tensor x =
          packed ? at::randn({T, 3}, at::kDouble) : at::randn({2, T, 3}, at::kDouble);
      testing::expect_numerical_gradients(
          [&](const auto& in) { return short_conv_final_state(in[0], 3, options(in[1])); },
          {x, at::randn({2, 4, 3}, at::kDouble)});
    }
}

// Outputs that do not see it stay numbers.
TEST(ShortConvState, NaNReachesTheOutputsThatSeeItAlone) {
  constexpr int64_t T = 40, K = 4, D = 3, kAt = 11;
  for (const int64_t G : {1, 16}) {
    const at::Tensor x = at::randn({1, T, 16}), weight = at::randn({G, K});
    x[0][kAt].fill_(std::numeric_limits<float>::quiet_NaN());
    const at::Tensor y =
        short_conv(x, {.weight = weight, .dilation = D, .activation = ConvActivation::kSilu});
    for (int64_t t = 0; t < T; ++t) {
      const bool sees = t >= kAt && (t - kAt) % D == 0 && (t - kAt) / D < K;
      EXPECT_EQ(y[0][t].isnan().all().item<bool>(), sees) << t;
      EXPECT_EQ(y[0][t].isnan().any().item<bool>(), sees) << t;
    }
  }
}

}  // namespace
}  // namespace seqconv::ops
