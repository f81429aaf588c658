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
  EXPECT_GE(plan.chunks * plan.chunk_rows, 4500);
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

/// A case of whole sequences without a past, or with one that is full.
ShortCase drawn_streams(ShortCases& cases) {
  ShortCase c = cases.draw();
  PlainShortConv& p = c.plain;
  p.offsets.clear();
  p.lengths.clear();
  c.numbers.clear();
  c.batch = p.shape.batch = cases.number(1, 3);
  c.steps = p.shape.steps = cases.number(1, 20);
  p.shape.padding_left = p.shape.kernel_size - 1;
  c.shift = 0;
  cases.draw_values(c);
  return c;
}

/// Streams in rows 1 .. B of a ring with room to spare, which go on by steps of some
/// tokens: in another order, beside a row of padding, each by real inputs of its own.
template <class S>
class HostStreams {
 public:
  HostStreams(ShortCases& cases, const ShortCase& of)
      : cases_(cases),
        c_(of),
        values_(of),
        x_(narrowed<S>(of.plain.x)),
        slots_(of.plain.reach() + cases.number(0, 3)),
        seen_(of.plain.past ? of.plain.reach() : 0),
        ring_(static_cast<size_t>(M_ * slots_ * C_)),
        y_(garbage<S>(B_ * T_ * C_)),
        positions_(static_cast<size_t>(2 * M_), seen_),
        now_(static_cast<size_t>(B_)) {
    const auto past = narrowed<S>(of.plain.before);
    for (int64_t b = 0; of.plain.past && b < B_; ++b)
      std::copy_n(past.begin() + b * seen_ * C_, seen_ * C_, row_of(b));
  }

  bool is_done() const { return *std::min_element(now_.begin(), now_.end()) == T_; }

  void go_on() {
    // Stream n is sequence B-1-n; the last one is padding.
    tokens_ = cases_.number(1, 4);
    N_ = B_ + 1;
    rows_.clear();
    lengths_.clear();
    for (int64_t n = 0; n < N_; ++n) {
      const int64_t b = B_ - 1 - n;
      rows_.push_back(b < 0 ? cases_.one_of<int64_t>({-1, -7, M_, M_ + 5}) : b + 1);
      lengths_.push_back(
          b < 0 ? tokens_ : std::min(cases_.number(0, tokens_), T_ - now_[static_cast<size_t>(b)]));
    }
    keep(step());
  }

  void expect_whole() const {
    EXPECT_TRUE(same_bits(y_, run_on_host<S>(c_).y));
    for (const int64_t m : {int64_t{0}, M_ - 1})
      EXPECT_EQ(positions_[static_cast<size_t>(2 * m)], seen_);
    for (int64_t b = 0; b < B_; ++b)
      for (int64_t back = 1; back <= std::min(slots_, T_); ++back) {
        const auto kept = ring_.begin() + ((b + 1) * slots_ + (seen_ + T_ - back) % slots_) * C_;
        const auto given = x_.begin() + (b * T_ + T_ - back) * C_;
        EXPECT_TRUE(same_bits(std::vector<S>(kept, kept + C_), std::vector<S>(given, given + C_)));
      }
  }

 private:
  auto row_of(int64_t b) { return ring_.begin() + (b + 1) * slots_ * C_; }

  /// y of the next tokens; what is not real is no number.
  std::vector<S> step() {
    const PlainShortConv& p = c_.plain;
    const int64_t taps = p.dynamic ? p.shape.heads * p.shape.kernel_size : 0;
    std::vector<double> dynamic(static_cast<size_t>(N_ * tokens_ * taps), NAN);
    std::vector<S> in = garbage<S>(N_ * tokens_ * C_), out = in;
    for (int64_t n = 0; n < B_; ++n) {
      const int64_t b = B_ - 1 - n, from = b * T_ + now_[static_cast<size_t>(b)];
      const int64_t count = lengths_[static_cast<size_t>(n)], to = n * tokens_;
      std::copy_n(x_.begin() + from * C_, count * C_, in.begin() + to * C_);
      std::copy_n(p.dynamic_taps.begin() + from * taps, count * taps, dynamic.begin() + to * taps);
    }
    BesideValues<S> given(dynamic, c_.wide);
    ShortConvStep<S> step = {
        .setup = values_.setup,
        .x = in.data(),
        .ring = ring_.data(),
        .slots = slots_,
        .positions = positions_.data(),
        .rows = rows_.data(),
        .ring_rows = M_,
        .y = out.data()};
    step.setup.shape.batch = N_;
    step.setup.shape.steps = tokens_;
    step.setup.dynamic = given.get();
    step.setup.lengths = lengths_.data();
    HostLauncher launcher(cases_.coin());
    run(launcher, step);
    return out;
  }

  void keep(const std::vector<S>& out) {
    for (int64_t n = 0; n < N_; ++n) {
      const int64_t b = B_ - 1 - n, real = b < 0 ? 0 : lengths_[static_cast<size_t>(n)];
      const auto from = out.begin() + n * tokens_ * C_;
      for (auto at = from + real * C_; at != from + tokens_ * C_; ++at)
        EXPECT_EQ(widen(*at), 0);
      if (b < 0)
        continue;
      auto& now = now_[static_cast<size_t>(b)];
      std::copy_n(from, real * C_, y_.begin() + (b * T_ + now) * C_);
      now += real;
      EXPECT_EQ(positions_[static_cast<size_t>(2 * (b + 1))], seen_ + now);
      EXPECT_EQ(positions_[static_cast<size_t>(2 * (b + 1) + 1)], seen_ + now);
    }
  }

  ShortCases& cases_;
  const ShortCase& c_;
  ShortValues<S> values_;
  std::vector<S> x_;
  int64_t B_ = c_.batch, T_ = c_.steps, C_ = c_.plain.shape.channels, M_ = B_ + 2;
  int64_t slots_, seen_, tokens_ = 0, N_ = 0;
  std::vector<S> ring_, y_;
  std::vector<int64_t> positions_, now_, rows_, lengths_;
};

template <class S>
void expect_steps(ShortCases& cases) {
  const ShortCase c = drawn_streams(cases);
  SCOPED_TRACE(::testing::Message() << c << " bytes " << sizeof(S));
  HostStreams<S> streams(cases, c);
  while (!streams.is_done())
    streams.go_on();
  streams.expect_whole();
}

TEST(CudaShortConvOnHost, StepsHaveTheBitsOfTheWhole) {
  ShortCases cases(5);
  for (int i = 0; i < internal::testing::rounds(200); ++i) {
    expect_steps<float>(cases);
    expect_steps<BFloat16>(cases);
    expect_steps<Float16>(cases);
  }
}

TEST(CudaShortConvOnHost, PositionsNeverForgetHowFarTheyWere) {
  const ShortCase c = sized(1, 2, 3, 3, 0, 4);
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
