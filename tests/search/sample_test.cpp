#include "search/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "search/table_decoder.h"
#include "support/rounds.h"

namespace seqconv::internal {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kAlmostOne = 1 - 0x1p-53;  // the last double below 1

using testing::kNan;
using Tokens = std::vector<int32_t>;
using Shares = std::vector<std::pair<int32_t, double>>;

SamplingOptions options(
    double temperature, int64_t top_k = 0, double top_p = 1, bool ban_unknown = false) {
  return {temperature, top_k, top_p, ban_unknown};
}

/// The tokens drawn for a grid of `n` uniform numbers, in the grid's order.
Tokens draw_grid(
    const SamplingOptions& o,
    const std::vector<float>& row,
    const Tokens& banned = {},
    int64_t n = 1000) {
  Sampler sampler(o);
  Tokens tokens;
  for (int64_t i = 0; i < n; ++i) {
    const double u = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
    const SampledToken drawn = sampler.draw(row, banned, u);
    if (drawn.log_probability != row[static_cast<size_t>(drawn.token)])
      ADD_FAILURE() << "a wrong log-probability for token " << drawn.token;
    tokens.push_back(drawn.token);
  }
  return tokens;
}

/// Those that came, in order of their first coming.
Tokens kinds(const Tokens& tokens) {
  Tokens kinds;
  std::set<int32_t> seen;
  for (const int32_t token : tokens)
    if (seen.insert(token).second)
      kinds.push_back(token);
  return kinds;
}

/// exp(row) becomes `probabilities`; <s> and <pad> look most probable.
std::vector<float> row_of(const std::vector<double>& probabilities) {
  std::vector<float> row = {5, 5};
  for (const double p : probabilities)
    row.push_back(static_cast<float>(std::log(p)));
  return row;
}

void restrict(Shares& shares, size_t count) {
  shares.resize(std::min(shares.size(), count));
  double total = 0;
  for (const auto& [token, share] : shares)
    total += share;
  for (auto& [token, share] : shares)
    share /= total;
}

/// The rules by a full sort: what may come, in the documented order.
Shares expected_shares(
    const SamplingOptions& o, const std::vector<float>& row, const Tokens& banned) {
  Shares shares;
  for (size_t i = 2; i < row.size(); ++i) {
    const auto token = static_cast<int32_t>(i);
    if (std::count(banned.begin(), banned.end(), token) > 0 || (o.ban_unknown && token == 3) ||
        !(row[i] > -kInfinity))
      continue;
    shares.emplace_back(token, std::exp(double{row[i]} / o.temperature));
  }
  if (o.top_k > 0 || o.top_p < 1)
    std::stable_sort(shares.begin(), shares.end(), [&](auto& a, auto& b) {
      return row[static_cast<size_t>(a.first)] > row[static_cast<size_t>(b.first)];
    });
  restrict(shares, o.top_k > 0 ? static_cast<size_t>(o.top_k) : shares.size());
  double reached = 0;
  size_t nucleus = 0;
  while (nucleus < shares.size() && (reached < o.top_p || o.top_p == 1))
    reached += shares[nucleus++].second;
  restrict(shares, nucleus);
  return shares;
}

/// Contiguous shares of a grid hold their probability but for one point.
void expect_shares(const Tokens& drawn, const Shares& shares) {
  std::map<int32_t, double> counts;
  for (const int32_t token : drawn)
    counts[token] += 1;
  Tokens order;
  for (const auto& [token, share] : shares) {
    const double wanted = share * static_cast<double>(drawn.size());
    EXPECT_NEAR(counts[token], wanted, 1.001) << "token " << token;
    if (counts[token] > 0)
      order.push_back(token);
  }
  EXPECT_EQ(kinds(drawn), order);
}

std::vector<float> random_row(uint64_t seed, size_t size) {
  std::vector<float> row(size);
  for (size_t i = 0; i < size; ++i) {
    const uint32_t word = random_word(seed, i);
    row[i] = seed % 2 == 0 ? -static_cast<float>(word % 7) : -static_cast<float>(word) / 5e8f;
    if (seed % 3 == 2 && word % 11 == 0)
      row[i] = word % 2 == 0 ? kNan : -kInfinity;
  }
  return row;
}

TEST(Sampler, SharesAreThoseOfAFullSortOnRandomRows) {
  // Six have rows with ties and without, with impossible tokens and without
  // them, none to two bans and a ban on the unknown one.
  const auto last = static_cast<uint64_t>(testing::rounds(24));
  for (uint64_t seed = 1; seed <= last; ++seed) {
    for (const size_t size : {6, 50, 300}) {
      const std::vector<float> row = random_row(seed, size);
      Tokens banned;
      for (uint64_t i = 0; i < seed % 3; ++i)
        banned.push_back(static_cast<int32_t>(random_word(seed, i) % size));
      for (const double temperature : {0.4, 1.0, 1.7})
        for (const int64_t top_k : {0, 1, 4, 70, 1000})
          for (const double top_p : {0.3, 0.9001, 0.99999, 1.0}) {
            const SamplingOptions o = options(temperature, top_k, top_p, seed % 4 == 0);
            SCOPED_TRACE(
                concat("seed ", seed, " V ", size, " T ", temperature, " k ", top_k, " p ", top_p));
            expect_shares(draw_grid(o, row, banned, 400), expected_shares(o, row, banned));
          }
    }
  }
}

TEST(Sampler, LargeNucleiOfFlatRowsAreWhole) {
  // Past the first and the second size that a nucleus is looked for in.
  const std::vector<float> row(2 + 8000, -9.0f);
  for (const double top_p : {0.01, 0.1, 0.5, 0.95}) {
    Sampler sampler(options(1, 0, top_p));
    const double size = std::ceil(top_p * 8000);
    EXPECT_EQ(sampler.draw(row, {}, 0).token, 2);
    EXPECT_EQ(sampler.draw(row, {}, 0.5).token, 2 + size / 2);
    EXPECT_EQ(sampler.draw(row, {}, kAlmostOne).token, 1 + size);
  }
}

TEST(Sampler, TemperatureZeroTakesTheBestAndTheLowestAmongEquals) {
  const std::vector<float> row = row_of({0.1, 0.1, 0.3, 0.2, 0.3});
  EXPECT_EQ(kinds(draw_grid(options(0), row)), Tokens({4}));
  EXPECT_EQ(kinds(draw_grid(options(0), row, {4})), Tokens({6}));
  EXPECT_EQ(kinds(draw_grid(options(0, 3, 0.9), row, {4, 6})), Tokens({5}));
}

TEST(Sampler, WithoutRestrictionsTheDistributionIsTheSoftmaxByToken) {
  const std::vector<float> row = row_of({0.125, 0.0625, 0.5, 0.25, 0.0625});
  const Tokens drawn = draw_grid(options(1), row, {}, 10000);
  expect_shares(drawn, {{2, 0.125}, {3, 0.0625}, {4, 0.5}, {5, 0.25}, {6, 0.0625}});
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> row = row_of({0.2, 0.8});
  expect_shares(draw_grid(options(0.5), row, {}, 10000), {{2, 0.04 / 0.68}, {3, 0.64 / 0.68}});
  const double flat = std::sqrt(0.2) + std::sqrt(0.8);
  expect_shares(
      draw_grid(options(2), row, {}, 10000),
      {{2, std::sqrt(0.2) / flat}, {3, std::sqrt(0.8) / flat}});
  EXPECT_EQ(kinds(draw_grid(options(1e-320), row)), Tokens({3}));
  expect_shares(draw_grid(options(1e300), row), {{2, 0.5}, {3, 0.5}});
}

TEST(Sampler, TopKKeepsTheLowestAmongEqualsAndRenormalises) {
  const std::vector<float> row = row_of({0.1, 0.2, 0.2, 0.3, 0.2});
  expect_shares(draw_grid(options(1, 1), row), {{5, 1.0}});
  expect_shares(draw_grid(options(1, 2), row), {{5, 0.6}, {3, 0.4}});
  expect_shares(draw_grid(options(1, 3), row), {{5, 3. / 7}, {3, 2. / 7}, {4, 2. / 7}});
  EXPECT_EQ(kinds(draw_grid(options(1, 99), row)), Tokens({5, 3, 4, 6, 2}));
}

TEST(Sampler, TopPEndsWithTheTokenThatReachesIt) {
  const std::vector<float> equal(2 + 8, -3.0f);  // weights of exactly 1
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 0.25), equal)), Tokens({2, 3}));
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 0.2501), equal)), Tokens({2, 3, 4}));
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 0.2499), equal)), Tokens({2, 3}));
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 1e-300), equal)), Tokens({2}));
  // The sum is that of what temperature and top_k left: here 4 of 8.
  EXPECT_EQ(kinds(draw_grid(options(1, 4, 0.5), equal)), Tokens({2, 3}));
  const std::vector<float> row = row_of({0.5, 0.3, 0.2});
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 0.6), row)), Tokens({2, 3}));
  EXPECT_EQ(kinds(draw_grid(options(0.5, 0, 0.6), row)), Tokens({2}));
}

TEST(Sampler, BannedTokensNeverComeEvenIfTheyDominate) {
  std::vector<float> row = {0, 0, 0, 0, -2000, -2001};
  for (const SamplingOptions& o : {options(1), options(1, 5), options(1, 0, 0.99), options(0.01)}) {
    const Tokens came = kinds(draw_grid(o, row, {2, 3}));
    EXPECT_EQ(came, o.temperature < 1 ? Tokens({4}) : Tokens({4, 5}));
    EXPECT_EQ(kinds(draw_grid(o, row, {2, 3, 4})), Tokens({5}));
  }
  const Tokens all = kinds(draw_grid(options(1), row));
  EXPECT_EQ(all, Tokens({2, 3}));
  EXPECT_EQ(kinds(draw_grid(options(1, 0, 1, true), row)), Tokens({2}));
  EXPECT_EQ(kinds(draw_grid(options(0, 0, 1, true), row, {2})), Tokens({4}));
}

TEST(Sampler, BansOfOneCallAreForgottenInTheNext) {
  Sampler sampler(options(0));
  const std::vector<float> row = row_of({0.6, 0.3, 0.1});
  EXPECT_EQ(sampler.draw(row, Tokens({2, 3}), 0).token, 4);
  EXPECT_EQ(sampler.draw(row, {}, 0).token, 2);
}

TEST(Sampler, NanAndMinusInfinityNeverCome) {
  const std::vector<float> row = {0, 0, kNan, -1, -kInfinity, -1};
  for (const SamplingOptions& o : {options(1), options(1, 9), options(1, 0, .9)})
    EXPECT_EQ(kinds(draw_grid(o, row)), Tokens({3, 5}));
}

TEST(Sampler, UniformNumbersNextToOneTakeTheLastPossibleToken) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<float> row = random_row(2 * seed + 1, 500);
    row.back() = row[row.size() - 2] = -5000;  // weighs nothing
    for (const SamplingOptions& o :
         {options(1), options(1, 7), options(1, 0, 0.8), options(1.3, 40, .7)}) {
      const Shares shares = expected_shares(o, row, {});
      int32_t last = -1;
      for (const auto& [token, share] : shares)
        last = share > 0 ? token : last;
      EXPECT_EQ(Sampler(o).draw(row, {}, kAlmostOne).token, last);
      EXPECT_EQ(Sampler(o).draw(row, {}, 0).token, shares.front().first);
    }
  }
}

template <class Kind = Error>
void expect_error(const std::function<void()>& action, const std::string& message) {
  try {
    action();
    ADD_FAILURE() << "no error, but wanted: " << message;
  } catch (const Kind& error) {
    EXPECT_EQ(std::string(error.what()), message);
  }
}

TEST(Sampler, WithNothingLeftThereIsAnError) {
  const std::string head = "sampling needs a token that is neither <s> nor <pad>, not banned and "
                           "not impossible, but none of the ";
  for (const SamplingOptions& o : {options(0), options(1), options(1, 3), options(1, 0, .5)}) {
    Sampler sampler(o);
    const auto fails =
        [&](const std::vector<float>& row, const Tokens& banned, const std::string& tail) {
          expect_error<NoProbability>([&] { sampler.draw(row, banned, 0.5); }, head + tail);
        };
    fails({-1, -1, -1, -1}, {2, 3}, "4 is left after 2 bans");
    fails({-1, -1, kNan, -kInfinity}, {}, "4 is left after 0 bans");
    fails({-1, -1}, {}, "2 is left after 0 bans");
    fails({}, {}, "0 is left after 0 bans");
  }
}

TEST(Sampler, ArgumentsOutOfRangeAreErrors) {
  Sampler sampler(options(1));
  const auto fails = [&](const std::vector<float>& row,
                         const Tokens& banned,
                         double uniform,
                         const std::string& message) {
    expect_error([&] { sampler.draw(row, banned, uniform); }, message);
  };
  const std::vector<float> row = {-1, -1, -1, -1};
  const std::string range = "sampling needs a uniform number of at least 0 and below 1, but got ";
  fails(row, {}, 1, range + "1");
  fails(row, {}, -0.25, range + "-0.25");
  fails(row, {}, std::nan(""), range + "nan");
  const std::string bans =
      "banned tokens must be at least 0 and below the vocabulary size 4, but got ";
  fails(row, {2, 4}, 0, bans + "4");
  fails(row, {-1}, 0, bans + "-1");
  fails(
      {0, 0, -1, kInfinity},
      {},
      0,
      "log-probabilities must be below infinity, but token 3 has inf");
}

TEST(SamplingOptions, WrongValuesAreUsageErrors) {
  const auto wanted = [](const SamplingOptions& o, const std::string& message) {
    EXPECT_THROW(validate(o, "sampling"), UsageError);
    expect_error([&] { validate(o, "sampling"); }, "sampling." + message);
    expect_error([&] { Sampler sampler(o); }, message);
  };
  const std::string temperature = "temperature must be a finite number of at least 0, but got ";
  wanted(options(-0.5), temperature + "-0.5");
  wanted(options(std::nan("")), temperature + "nan");
  wanted(options(HUGE_VAL), temperature + "inf");
  wanted(options(1, -1), "top_k must be at least 0, but got -1");
  const std::string top_p = "top_p must be above 0 and at most 1, but got ";
  wanted(options(1, 0, 0), top_p + "0");
  wanted(options(1, 0, 1.5), top_p + "1.5");
  wanted(options(1, 0, std::nan("")), top_p + "nan");
  EXPECT_NO_THROW(validate(SamplingOptions(), "sampling"));
}

}  // namespace
}  // namespace seqconv::internal
