#include "kernels/cuda_short_conv_support.h"

/// The kernels of the device's short convolution, run thread by thread on the host,
/// against loops of doubles.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

template <class S>
void expect_plain(const ShortCase& c) {
  SCOPED_TRACE(::testing::Message() << c << " bytes " << sizeof(S));
  const PlainShortConv& want = c.plain;
  const auto got = run_on_host<S>(c);
  EXPECT_LE(error_of(got.y, want.y), bound<S>()) << "y";
  EXPECT_LE(error_of(got.grad_x, want.grad_x), bound<S>()) << "x";
  EXPECT_LE(error_of(got.grad_past, c.of_states(want.grad_before)), bound<S>()) << "past";
  EXPECT_LE(error_of(got.grad_weight, want.grad_static), bound<S>()) << "weight";
  EXPECT_LE(error_of(got.grad_bias, want.grad_bias), bound<S>()) << "bias";
  EXPECT_LE(error_of(narrowed<float>(got.grad_dynamic), want.grad_dynamic), bound<S>())
      << "dynamic";
  const auto again = run_on_host<S>(c, /*backwards=*/true);
  EXPECT_TRUE(same_bits(got.y, again.y));
  EXPECT_TRUE(same_bits(got.grad_x, again.grad_x));
  EXPECT_TRUE(same_bits(got.grad_past, again.grad_past));
  EXPECT_TRUE(same_bits(got.grad_weight, again.grad_weight));
  EXPECT_TRUE(same_bits(got.grad_bias, again.grad_bias));
  EXPECT_TRUE(same_bits(got.grad_dynamic, again.grad_dynamic));
}

void expect_in_all_types(const ShortCase& c) {
  internal::testing::in_turn(
      c.plain.shape.channels + c.steps,
      [&] { expect_plain<float>(c); },
      [&] { expect_plain<BFloat16>(c); },
      [&] { expect_plain<Float16>(c); });
}

TEST(CudaShortConvOnHost, EqualsLoopsOfDoubles) {
  ShortCases cases(1);
  for (int i = 0; i < internal::testing::rounds(600); ++i)
    expect_in_all_types(cases.draw());
}

/// Sizes of a case of all positions, with `heads` for dynamic taps, 0 for none.
ShortCase sized(int64_t B, int64_t T, int64_t C, int64_t G, int64_t heads, int64_t K) {
  ShortCase c;
  c.batch = B;
  c.steps = T;
  PlainShortConv& p = c.plain;
  p.shape = {
      .batch = B,
      .steps = T,
      .channels = C,
      .heads = std::max<int64_t>(1, heads),
      .kernel_size = K,
      .padding_left = K - 1};
  p.groups = G;
  p.dynamic = heads > 0;
  p.bias = p.past = true;
  p.end = {ConvActivation::kSilu, true};
  ShortCases(7).draw_values(c);
  return c;
}

TEST(CudaShortConvOnHost, TakesEverySizeAtItsEdge) {
  for (const int64_t K : {1, 4, 128})
    for (const int64_t T : {0, 1, 3, 130})
      for (const int64_t C : {1, 6}) {
        expect_in_all_types(sized(2, T, C, C, 0, K));
        expect_in_all_types(sized(1, T, C, 1, C, K));
        expect_in_all_types(sized(1, T, C, 0, 1, K));
      }
  expect_in_all_types(sized(0, 5, 4, 2, 2, 3));
}

/// So many rows that sums over them are made in several stages.
TEST(CudaShortConvOnHost, SumsOfManyRowsHaveStages) {
  const ShortCase c = sized(3, 1500, 2, 1, 0, 3);
  const ProductsPlan plan(c.plain.shape);
  EXPECT_GT(sum_outputs(plan.chunks), 1);
  EXPECT_EQ(plan.chunks * plan.chunk_rows >= 4500, true);
  expect_plain<float>(c);
  expect_plain<Float16>(c);
}

TEST(CudaShortConvOnHost, AGradientThatIsNotWantedDoesNotChangeTheOthers) {
  ShortCases cases(3);
  for (int i = 0; i < internal::testing::rounds(60); ++i) {
    ShortCase c = cases.draw();
    SCOPED_TRACE(::testing::PrintToString(c));
    const auto want = run_on_host<BFloat16>(c);
    const auto same = [](bool wanted, const auto& got, const auto& all) {
      const auto is_none = [](double value) { return std::isnan(value); };
      return wanted ? same_bits(got, all) : std::all_of(got.begin(), got.end(), is_none);
    };
    for (int set = 0; set < 32; ++set) {
      c.wants_x = (set & 1) != 0;
      c.wants_weight = (set & 2) != 0;
      c.wants_dynamic = (set & 4) != 0;
      c.wants_bias = (set & 8) != 0;
      c.wants_past = (set & 16) != 0;
      const auto got = run_on_host<BFloat16>(c);
      EXPECT_TRUE(same(c.wants_x, widened(got.grad_x), widened(want.grad_x)));
      EXPECT_TRUE(same(c.wants_weight, got.grad_weight, want.grad_weight));
      EXPECT_TRUE(same(c.wants_dynamic, got.grad_dynamic, want.grad_dynamic));
      EXPECT_TRUE(same(c.wants_bias, got.grad_bias, want.grad_bias));
      EXPECT_TRUE(same(c.wants_past, widened(got.grad_past), widened(want.grad_past)));
    }
  }
}

/// Rows that are not real, and taps there, are numbers that are none.
TEST(CudaShortConvOnHost, PaddingIsNeverLookedAt) {
  ShortCases cases(4);
  for (int i = 0; i < internal::testing::rounds(120); ++i) {
    ShortCase c = cases.draw();
    PlainShortConv& p = c.plain;
    if (p.lengths.empty())
      continue;
    SCOPED_TRACE(::testing::PrintToString(c));
    const auto want = run_on_host<float>(c);
    const int64_t C = p.shape.channels, taps = p.shape.heads * p.shape.kernel_size;
    for (int64_t b = 0; b < p.shape.batch; ++b) {
      const int64_t end =
          p.offsets.empty() ? p.first(b) + c.steps : p.offsets[static_cast<size_t>(b) + 1];
      for (int64_t row = p.first(b) + p.real(b); row < end; ++row) {
        std::fill_n(p.x.begin() + row * C, C, NAN);
        std::fill_n(p.grad_y.begin() + row * C, C, NAN);
        if (p.dynamic)
          std::fill_n(p.dynamic_taps.begin() + row * taps, taps, NAN);
      }
    }
    const auto got = run_on_host<float>(c);
    EXPECT_TRUE(same_bits(got.y, want.y));
    EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
    EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
    EXPECT_TRUE(same_bits(got.grad_dynamic, want.grad_dynamic));
    EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
    EXPECT_TRUE(same_bits(got.grad_past, want.grad_past));
  }
}

TEST(CudaShortConvOnHost, LengthsOutOfRangeAreClamped) {
  ShortCase c = sized(2, 9, 4, 4, 0, 3);
  c.plain.lengths = {9, 0};
  const auto want = run_on_host<float>(c);
  c.plain.lengths = {1000, -3};
  const auto got = run_on_host<float>(c);
  EXPECT_TRUE(same_bits(got.y, want.y));
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
}

/// No value of a tensor is checked on a device: none makes a kernel leave its
/// tensors, which the sanitizer would find.
TEST(CudaShortConvOnHost, SequencesThatCannotBeStayWithinTheirTensors) {
  using Offsets = std::vector<int64_t>;
  for (const Offsets& offsets :
       {Offsets{-5, 100, 3}, {9, 5, 0}, {4, 4, 4}, {100, 200, 300}, {-9, -8, -7}, {0, 1, 2}}) {
    ShortCase c = sized(1, 9, 4, 4, 2, 3);
    c.plain.shape.batch = 2;
    c.plain.before.resize(static_cast<size_t>(2 * 2 * 4), 1.0);
    c.plain.offsets = offsets;
    const auto got = run_on_host<float>(c);
    for (const float y : got.y)
      EXPECT_TRUE(std::isfinite(y));
  }
  ShortCase c = sized(2, 9, 4, 4, 2, 3);
  c.numbers = {0, 0, 1, 0, 0, -1, 0, 0, 0, 5, -1, 5, -1, 5, 5, 5, 5, 5};
  c.beginnings = {0, 1};
  for (const float y : run_on_host<float>(c).y)
    EXPECT_TRUE(std::isfinite(y));
}

/// Streams of a ring with room to spare, in steps of some tokens: their rows in
/// another order, among them padding, and real inputs of their own.
template <class S>
void expect_steps(ShortCases& cases, ShortCase c) {
  PlainShortConv& p = c.plain;
  p.offsets.clear();
  p.lengths.clear();
  c.numbers.clear();
  c.batch = p.shape.batch = cases.number(1, 3);
  c.steps = p.shape.steps = cases.number(1, 20);
  p.shape.padding_left = p.shape.kernel_size - 1;
  c.shift = 0;
  cases.draw_values(c);
  SCOPED_TRACE(::testing::Message() << c << " bytes " << sizeof(S));
  const auto whole = run_on_host<S>(c);
  const int64_t B = c.batch, T = c.steps, C = p.shape.channels, L = p.reach();
  const int64_t slots = L + cases.number(0, 3), seen = p.past ? L : 0, M = B + 2;
  ShortValues<S> values(c);
  const auto x = narrowed<S>(p.x), past = narrowed<S>(p.before);
  std::vector<S> ring(static_cast<size_t>(M * slots * C)), y = garbage<S>(B * T * C);
  std::vector<int64_t> positions(static_cast<size_t>(2 * M), seen);
  if (p.past)
    for (int64_t b = 0; b < B; ++b)
      std::copy_n(past.begin() + b * L * C, L * C, ring.begin() + (b + 1) * slots * C);
  std::vector<int64_t> now(static_cast<size_t>(B));  // tokens that a stream has had
  while (*std::min_element(now.begin(), now.end()) < T) {
    // The last row is padding: of the ring's rows, none or one that is not there.
    const int64_t tokens = cases.number(1, 4), N = B + 1;
    const int64_t taps = p.dynamic ? p.shape.heads * p.shape.kernel_size : 0;
    std::vector<int64_t> rows, lengths;
    std::vector<double> dynamic(static_cast<size_t>(N * tokens * taps), NAN);
    std::vector<S> in = garbage<S>(N * tokens * C), out = garbage<S>(N * tokens * C);
    for (int64_t n = 0; n < N; ++n) {
      const int64_t b = B - 1 - n, from = b < 0 ? T : now[static_cast<size_t>(b)];
      rows.push_back(b < 0 ? cases.one_of<int64_t>({-1, -7, M, M + 5}) : b + 1);
      lengths.push_back(b < 0 ? tokens : std::min(cases.number(0, tokens), T - from));
      for (int64_t t = 0; b >= 0 && t < lengths.back(); ++t) {
        std::copy_n(x.begin() + (b * T + from + t) * C, C, in.begin() + (n * tokens + t) * C);
        std::copy_n(
            p.dynamic_taps.begin() + (b * T + from + t) * taps,
            taps,
            dynamic.begin() + (n * tokens + t) * taps);
      }
    }
    BesideValues<S> given(dynamic, c.wide);
    ShortConvStep<S> step = {
        .setup = values.setup,
        .x = in.data(),
        .ring = ring.data(),
        .slots = slots,
        .positions = positions.data(),
        .rows = rows.data(),
        .ring_rows = M,
        .y = out.data()};
    step.setup.shape.batch = N;
    step.setup.shape.steps = tokens;
    step.setup.dynamic = given.get();
    step.setup.lengths = lengths.data();
    HostLauncher launcher(cases.coin());
    run(launcher, step);
    for (int64_t n = 0; n < N; ++n) {
      const int64_t b = B - 1 - n, real = b < 0 ? 0 : lengths[static_cast<size_t>(n)];
      for (int64_t i = real * C; i < tokens * C; ++i)
        EXPECT_EQ(widen(out[static_cast<size_t>(n * tokens * C + i)]), 0);
      if (b < 0)
        continue;
      auto& had = now[static_cast<size_t>(b)];
      std::copy_n(out.begin() + n * tokens * C, real * C, y.begin() + (b * T + had) * C);
      had += real;
      EXPECT_EQ(positions[static_cast<size_t>(2 * (b + 1))], seen + had);
      EXPECT_EQ(positions[static_cast<size_t>(2 * (b + 1) + 1)], seen + had);
    }
  }
  EXPECT_TRUE(same_bits(y, whole.y));
  for (const int64_t m : {int64_t{0}, M - 1})
    EXPECT_EQ(positions[static_cast<size_t>(2 * m)], seen);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t back = 1; back <= std::min(slots, T); ++back) {
      const auto kept = ring.begin() + ((b + 1) * slots + (seen + T - back) % slots) * C;
      const auto given = x.begin() + (b * T + T - back) * C;
      EXPECT_EQ(widened(std::vector<S>(kept, kept + C)), widened(std::vector<S>(given, given + C)));
    }
}

TEST(CudaShortConvOnHost, StepsHaveTheBitsOfTheWhole) {
  ShortCases cases(5);
  for (int i = 0; i < internal::testing::rounds(200); ++i) {
    expect_steps<float>(cases, cases.draw());
    expect_steps<BFloat16>(cases, cases.draw());
    expect_steps<Float16>(cases, cases.draw());
  }
}

TEST(CudaShortConvOnHost, PositionsNeverForgetHowFarTheyWere) {
  ShortCases cases(6);
  ShortCase c = sized(1, 2, 3, 3, 0, 4);
  ShortValues<float> values(c);
  const auto x = narrowed<float>(c.plain.x);
  std::vector<float> ring(15), y(6);
  std::vector<int64_t> positions = {5, 9};
  HostLauncher launcher;
  run(launcher,
      ShortConvStep<float>{
          .setup = values.setup,
          .x = x.data(),
          .ring = ring.data(),
          .slots = 5,
          .positions = positions.data(),
          .ring_rows = 1,
          .y = y.data()});
  EXPECT_EQ(positions, (std::vector<int64_t>{7, 9}));
}

/// A sequence in one piece, and in two of which the second goes on from the last
/// inputs of the first; side by side with others, packed and with numbers.
TEST(CudaShortConvOnHost, PiecesAndPackedSequencesHaveTheBitsOfTheWhole) {
  for (const int64_t K : {2, 4, 9})
    for (const int64_t cut : {1, 8, 13, 29}) {
      const int64_t T = 40, C = 6;
      ShortCase whole = sized(1, T, C, C, 2, K);
      const auto want = run_on_host<float>(whole);
      ShortCase packed = whole;
      PlainShortConv& p = packed.plain;
      p.shape.batch = 2;
      p.offsets = {0, cut, T};
      // The second piece has the inputs before it as its past.
      std::vector<double> all = p.before;
      all.insert(all.end(), p.x.begin(), p.x.begin() + cut * C);
      p.before.insert(p.before.end(), all.end() - p.reach() * C, all.end());
      EXPECT_TRUE(same_bits(run_on_host<float>(packed).y, want.y));
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
