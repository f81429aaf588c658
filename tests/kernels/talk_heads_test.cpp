#include "kernels/talk_test.h"

/// talk for heads of few channels, which share vectors.
namespace seqconv::internal::kernels {
namespace {

using testing::place;
using testing::ReferenceTalk;

class TalkHeads : public testing::TalkTest {};

INSTANTIATE_TEST_SUITE_P(Isas, TalkHeads, ::testing::ValuesIn(supported_isas()), testing::isa_name);

// Vectors hold channels of several heads: all of whole groups, and of what is left.
constexpr std::pair<int64_t, int64_t> kManyHeads[] = {
    {64, 64},
    {81, 81},
    {64, 32},
    {70, 35},
    {66, 22},
    {63, 21},
    {64, 16},
    {84, 21},
    {65, 13},
    {72, 12},
    {64, 8},
    {88, 11},
    {90, 10},
    {96, 8},
    {75, 5}};

TEST_P(TalkHeads, EqualSumsOverWindowsOfNarrowHeads) {
  for (const auto& [C, H] : kManyHeads)
    for (const auto& [left, right] : {std::pair<int64_t, int64_t>{7, 0}, {5, 9}, {31, 31}})
      for (const int64_t T : {40, 270})
        expect_plain_everywhere({.shape = {2, T, C, H, left, right}, .lengths = {T, T / 2 - 3}});
}

TEST_P(TalkHeads, EqualSumsOverWindowsOfNarrowHeadsThatEndBeforeTheyBegin) {
  for (const auto& [C, H] : kManyHeads)
    expect_plain_everywhere({.shape = {1, 270, C, H, 9, 4}, .max = 1.5, .min = -1});
}

TEST_P(TalkHeads, EqualSumsOverWindowsOfNarrowHeadsWhereNothingStaysInTheCache) {
  for (const auto& [C, H] : kManyHeads)
    expect_plain_everywhere({.shape = {2, 260, C, H, 15, 3}, .streams_from = 1});
}

TEST_P(TalkHeads, NarrowHeadsHaveTheSameBitsForAnyNumberOfThreads) {
  for (const auto& [C, H] : kManyHeads) {
    ReferenceTalk plain = plain_of({.shape = {2, 600, C, H, 15, 31}, .lengths = {600, 333}});
    for (double& x : plain.x)
      x *= 1.1;  // sums that are not exact
    for (double& g : plain.grad_y)
      g *= 1.1;
    const auto one = results<float, float>(plain, testing::serial);
    EXPECT_EQ(one, (results<float, float>(plain, testing::in_chunks(3)))) << C << " " << H;
    EXPECT_EQ(one, (results<float, float>(plain, testing::one_by_one))) << C << " " << H;
  }
}

// Its own sums are those of narrow heads that stand elsewhere, or alone.
TEST_P(TalkHeads, ANarrowHeadHasTheSameBitsWhateverHeadsAreBesideIt) {
  constexpr int64_t T = 300, kHeads = 70;
  for (const int64_t R : {1, 2, 3, 4, 8}) {
    ReferenceTalk all = plain_of({.shape = {1, T, kHeads * R, kHeads, 15, 7}});
    for (double& x : all.x)
      x *= 1.1;
    // So that the windows of each reach as far, in both tiles.
    for (std::vector<double>* const offsets : {&all.left, &all.right})
      for (const int64_t t : {10, 280})
        std::fill_n(offsets->begin() + t * kHeads, kHeads, 1.0);
    const auto together = results<float, float>(all, testing::serial);
    for (const int64_t head : {0, 20, 63, 69}) {
      ReferenceTalk alone{{.shape = {1, T, R, 1, 15, 7}}, {}, {}, {}, {}, {}, {}, {}, {}};
      for (int64_t t = 0; t < T; ++t) {
        for (int64_t c = head * R; c < (head + 1) * R; ++c) {
          alone.x.push_back(all.x[place(t * kHeads * R + c)]);
          alone.grad_y.push_back(all.grad_y[place(t * kHeads * R + c)]);
        }
        alone.left.push_back(all.left[place(t * kHeads + head)]);
        alone.right.push_back(all.right[place(t * kHeads + head)]);
      }
      const auto own = results<float, float>(alone, testing::serial);
      for (int64_t t = 0; t < T; ++t) {
        for (int64_t c = 0; c < R; ++c)
          for (const int64_t from : {int64_t{0}, T})  // y, grad_x
            EXPECT_EQ(
                own[place((from + t) * R + c)],
                together[place(((from + t) * kHeads + head) * R + c)])
                << R << " " << head << " " << t;
        for (const int64_t from : {2 * T * R, 2 * T * R + T})
          EXPECT_EQ(own[place(from + t)], together[place((from + t) * kHeads + head)]);
      }
    }
  }
}

TEST_P(TalkHeads, ARowIsTheStepOfAStream) {
  for (const auto& [C, H] : kManyHeads) {
    if (!has_talk_row(C / H, GetParam()))
      continue;
    for (const auto& [reach, count] :
         {std::pair<int64_t, int64_t>{7, 8}, {31, 32}, {31, 5}, {4, 1}}) {
      ReferenceTalk plain = plain_of({.shape = {1, count, C, H, reach, 0}, .max = 1.3});
      for (double& x : plain.x)
        x *= 1.1;
      const auto x = testing::stored<float>(plain.x), left = testing::stored<float>(plain.left);
      std::vector<float> stepped(x.size()), ring(place(reach * C)), y(place(C));
      const TalkShape one{1, count, C, H, reach, 0};
      talk_step(
          TalkStep<float, float>{
              .shape = one,
              .x = x.data(),
              .offset_left = left.data(),
              .state = {ring.data(), reach, 0},
              .y = stepped.data()},
          {testing::serial, GetParam()});
      std::vector<std::vector<float>> rows;
      std::vector<const float*> pointers;
      for (int64_t t = 0; t < count; ++t)
        rows.emplace_back(x.begin() + t * C, x.begin() + (t + 1) * C);
      for (const auto& row : rows)
        pointers.push_back(row.data());
      talk_row(
          {.shape = {1, 1, C, H, reach, 0},
           .rows = pointers.data(),
           .count = count,
           .offset_left = left.data() + (count - 1) * H,
           .y = y.data()},
          GetParam());
      EXPECT_EQ(y, std::vector<float>(stepped.end() - C, stepped.end())) << C << " " << H;
    }
  }
}

// Heads that share a vector with it are summed in another way then, to the same result.
TEST_P(TalkHeads, ANotANumberInANarrowHeadChangesNoOther) {
  for (const int64_t R : {1, 2, 3, 4, 8}) {
    const int64_t T = 300, H = 40, C = H * R;
    ReferenceTalk plain = plain_of({.shape = {1, T, C, H, 3, 5}});
    const auto before = results<float, float>(plain, testing::serial);
    plain.x[place(100 * C + 17 * R)] = NAN;
    plain.grad_y[place(200 * C + 17 * R)] = INFINITY;
    const auto after = results<float, float>(plain, testing::serial);
    int64_t lost = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const bool of_channels = i < place(2 * T * C);
      const auto head = static_cast<int64_t>(of_channels ? i / place(R) : i) % H;
      lost += std::isfinite(after[i]) ? 0 : 1;
      if (head == 17)
        continue;
      EXPECT_NEAR(after[i], before[i], 1e-5) << R << " " << i;
    }
    EXPECT_GE(lost, 2);
    EXPECT_LE(lost, 60);
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
