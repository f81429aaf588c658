#include "runtime/workspace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "runtime/runtime_backends.h"
#include "sound_models.h"
#include "support/temporary_folder.h"

/// Memory of workspaces, by their own count: with sanitizers too.
namespace seqconv::internal {
namespace {

using runtime::Grown;
using runtime::Workspace;
using runtime::WorkspacePool;
using testing::options_of;
using testing::write_sound_model;

constexpr int64_t kFirstPage = int64_t{1} << 18;

TEST(Workspace, StaysSmallWhileNeedsCreep) {
  Workspace space;
  for (int64_t step = 1; step <= 20'000; ++step) {
    const Workspace::Frame frame(space);
    int64_t needed = 0;
    // Layers, each with a frame of its own, that ask for ever more.
    for (int64_t layer = 0; layer < 3; ++layer) {
      Workspace::Frame own(space);
      own.take<float>(16 * step + layer)[16 * step] = 1;
      own.take<double>(step)[step - 1] = 1;
      needed = 4 * (16 * step + layer) + 8 * step + 128;
    }
    ASSERT_LE(space.bytes(), 2 * needed + kFirstPage) << step;
  }
}

TEST(Workspace, StaysSmallWithinAFrameToo) {
  Workspace space;
  Workspace::Frame frame(space);
  frame.take(100);
  for (int64_t step = 1; step <= 20'000; ++step) {
    Workspace::Frame own(space);
    own.take<std::byte>(100 * step)[100 * step - 1] = std::byte{1};
    ASSERT_LE(space.bytes(), 2 * 100 * step + 2 * kFirstPage) << step;
  }
}

TEST(Workspace, KeepsNotMuchMoreThanWhatLives) {
  Workspace space;
  Workspace::Frame frame(space);
  int64_t taken = 0;
  for (uint64_t i = 0; i < 5'000; ++i) {
    const auto size = static_cast<int64_t>(random_word(1, i) % 30'000);
    frame.take<std::byte>(size);
    taken += size + 64;
    ASSERT_LE(space.bytes(), 2 * taken + kFirstPage);
  }
}

TEST(Workspace, GivesMemoryThatDoesNotOverlap) {
  Workspace space;
  for (uint64_t round = 0; round < 50; ++round) {
    Workspace::Frame frame(space);
    std::vector<std::pair<int32_t*, int64_t>> all;
    for (uint64_t i = 0; i < 40; ++i) {
      {
        Workspace::Frame inner(space);
        const auto count = static_cast<int64_t>(random_word(i, round) % 90'000);
        std::fill_n(inner.take<int32_t>(count), count, -1);
      }
      const auto count = static_cast<int64_t>(random_word(round, i) % 9'000);
      all.emplace_back(frame.take<int32_t>(count), count);
      std::fill_n(all.back().first, count, static_cast<int32_t>(i));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(all.back().first) % 64, 0U);
    }
    for (size_t i = 0; i < all.size(); ++i)
      for (int64_t n = 0; n < all[i].second; ++n)
        ASSERT_EQ(all[i].first[n], static_cast<int32_t>(i));
  }
}

TEST(Workspace, AtRestKeepsWhatTheLastUserNeeded) {
  Workspace space;
  const auto use = [&](int64_t bytes) {
    {
      Workspace::Frame frame(space);
      frame.take<std::byte>(bytes);
    }
    space.rest();
    return space.bytes();
  };
  const int64_t kept = use(10'000'000);
  EXPECT_GE(kept, 10'000'000);
  EXPECT_EQ(use(9'000'000), kept);
  EXPECT_EQ(use(1'000), 0);
  EXPECT_EQ(use(200'000'000), 0);
  EXPECT_EQ(use(1'000), kFirstPage);
}

TEST(Workspace, GrownBuffersTakeLittleMoreThanTheirLargest) {
  Workspace space;
  Workspace::Frame frame(space);
  Grown<float> buffer;
  for (int64_t count = 1; count <= 100'000; ++count)
    buffer.hold(count, frame)[count - 1] = 1;
  EXPECT_LE(space.bytes(), 6 * 4 * 100'000 + kFirstPage);
}

TEST(WorkspacePool, LendsOneAfterAnotherTheSame) {
  const auto pool = std::make_shared<WorkspacePool>();
  const auto use = [&] {
    const WorkspacePool::Loan spaces(pool);
    Workspace::Frame frame(spaces->kept);
    return frame.take(1'000'000);
  };
  const float* const first = use();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(use(), first);
}

TEST(WorkspacePool, HasAsManyAsAreUsedAtATime) {
  const int64_t before = Workspace::bytes_of_all();
  {
    const auto pool = std::make_shared<WorkspacePool>();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        for (int turn = 0; turn < 1'000; ++turn) {
          const WorkspacePool::Loan spaces(pool);
          Workspace::Frame frame(spaces->scratch);
          *frame.take<int>(1) = turn;
        }
      });
    threads.clear();
    EXPECT_LE(Workspace::bytes_of_all() - before, 3 * kFirstPage);
  }
  EXPECT_EQ(Workspace::bytes_of_all(), before);
}

class RuntimeWorkspaces : public ::testing::TestWithParam<MixerKind> {
 protected:
  ModelToRun model(Task task) const {
    return write_sound_model(options_of(GetParam(), task), task, folder_.path() / "model");
  }

 private:
  testing::TemporaryFolder folder_;
};

/// Keys and values of two layers, their bookkeeping, and what attention looks
/// through: bytes a token at most.
constexpr int64_t kBytesAToken = 1'000;

TEST_P(RuntimeWorkspaces, GrowWithALongTextInAttentionAlone) {
  const auto backend = RuntimeBackends().language(model(Task::kLanguageModel));
  const int64_t before = Workspace::bytes_of_all();
  const auto reader = backend->start();
  int64_t early = 0;
  for (int32_t token = 0; token < 3'000; ++token) {
    const int32_t id = 3 + token % 15;
    reader->read({&id, 1});
    if (token == 300)
      early = Workspace::bytes_of_all();
  }
  const int64_t late = Workspace::bytes_of_all();
  if (GetParam() == MixerKind::kSelfAttention)
    EXPECT_LE(late - before, 3'000 * kBytesAToken);
  else
    EXPECT_EQ(late, early);
}

TEST_P(RuntimeWorkspaces, AreUsedAgainByOneBatchAfterAnother) {
  const auto backend = RuntimeBackends().translation({model(Task::kTranslation)});
  const std::vector<std::vector<int32_t>> sources(20, {5, 6, 7, 8, 9});
  const std::vector<SearchInput> inputs(20, {.source_length = 6});
  DecodingOptions options;
  options.max_length_b = 12;
  const int64_t before = Workspace::bytes_of_all();
  int64_t first = 0;
  for (int batch = 0; batch < 10; ++batch) {
    search(*backend->start(sources), inputs, options);
    backend->score(sources, sources);
    if (batch == 0)
      first = Workspace::bytes_of_all();
  }
  EXPECT_GT(first, before);
  EXPECT_EQ(Workspace::bytes_of_all(), first);
}

INSTANTIATE_TEST_SUITE_P(
    OfEveryMixer,
    RuntimeWorkspaces,
    ::testing::ValuesIn(testing::all_block_kinds()),
    testing::block_kind_name);

}  // namespace
}  // namespace seqconv::internal
