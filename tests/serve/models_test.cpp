#include "serve/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "serve/answers.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = std::string(SEQCONV_FOLDERS) + "/translation_1";

std::vector<ServedModel> served(int count) {
  std::vector<ServedModel> models;
  for (int i = 0; i < count; ++i)
    models.push_back({"x" + std::to_string(i), "en", kFolder});
  return models;
}

int64_t open_count(const Models& models) {
  int64_t count = 0;
  for (const Models::State& state : models.states())
    count += state.is_open ? 1 : 0;
  return count;
}

TEST(ServedModels, AreRead) {
  const ServedModel model = read_served_model("pt-BR:zh-Hant=a=b");
  EXPECT_EQ(model.source + "|" + model.target + "|" + model.folder, "pt-BR|zh-Hant|a=b");
  for (const char* bad : {"", "de-en", "de-en=", "de=x", "-en=x", "de-=x", "=x"})
    EXPECT_THAT(
        testing::error_of([&] { read_served_model(bad); }), HasSubstr("must be SOURCE-TARGET=DIR"));
}

TEST(ServedModels, AreKeptWithinTheirMemory) {
  const int64_t one = [] {
    Models models(served(1), {});
    models.open(0);
    return models.states()[0].bytes;
  }();
  Models models(served(5), {.memory_bytes = 3 * one});
  for (size_t i = 0; i < 5; ++i)
    models.open(i);
  EXPECT_LE(open_count(models), 3);
  EXPECT_TRUE(models.states()[4].is_open);
  EXPECT_FALSE(models.states()[0].is_open);
  // Those in use cannot be closed.
  std::vector<Models::Opened> held;
  try {
    for (size_t i = 0; i < 5; ++i)
      held.push_back(models.open(i));
    FAIL() << "all were opened";
  } catch (const CallError& error) {
    EXPECT_EQ(error.status(), 503U);
    EXPECT_EQ(error.retry_after(), 1);
  }
  held.clear();
  models.open(0);
}

TEST(ServedModels, AreKeptWithinTheirMemoryWithTheirWeights) {
  const int64_t one = [] {
    Models models(served(1), {});
    models.open(0);
    return models.states()[0].bytes;
  }();
  Models models(served(4), {.memory_bytes = 3 * one + one / 2});
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < 4; ++i) {
      models.open(i);
      EXPECT_LE(open_count(models), 3);
      EXPECT_TRUE(models.states()[i].is_open);
    }
}

TEST(ServedModels, AreOpenedBesideToLookIntoThem) {
  Models models(served(2), {.keep_inspected_seconds = 0.02});
  const Models::Opened translates = models.open(1);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(models.open(1, Use::kInspect)->prober);
  EXPECT_TRUE(translates->translator);
  EXPECT_EQ(models.states(Use::kInspect)[1].times_opened, 1);
  EXPECT_GT(models.states(Use::kInspect)[1].bytes, 0);
  EXPECT_FALSE(models.states(Use::kInspect)[0].is_open);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  models.close_idle();
  EXPECT_FALSE(models.states(Use::kInspect)[1].is_open);
  EXPECT_TRUE(models.states()[1].is_open);  // for ever
}

TEST(ServedModels, ToLookIntoCountAsMemory) {
  const int64_t one = [] {
    Models models(served(1), {});
    models.open(0, Use::kInspect);
    return models.states(Use::kInspect)[0].bytes;
  }();
  Models models(served(1), {.memory_bytes = one + one / 2});
  models.open(0);
  models.open(0, Use::kInspect);
  EXPECT_FALSE(models.states()[0].is_open);
  const Models::Opened held = models.open(0);
  EXPECT_FALSE(models.states(Use::kInspect)[0].is_open);
  EXPECT_THROW(models.open(0, Use::kInspect), CallError);
}

TEST(ServedModels, AreOpenedOnceForManyWhoWantThem) {
  Models models(served(2), {});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] { EXPECT_NE(models.open(i % 2), nullptr); });
  for (std::thread& thread : threads)
    thread.join();
  for (const Models::State& state : models.states())
    EXPECT_EQ(state.times_opened, 1);
  const Models::Opened before = models.open(1);
  models.reload();
  EXPECT_NE(models.open(1), before);
  EXPECT_EQ(models.open(1), models.open(1));
  EXPECT_EQ(models.states()[1].times_opened, 2);
}

TEST(ServedModels, StayAsTheyWereWhereTheNewOneCannotBeOpened) {
  const testing::TemporaryFolder folder;
  const std::string own = folder.path() / "model";
  std::filesystem::copy(kFolder, own);
  Models models({{"de", "en", own}}, {});
  const Models::Opened before = models.open(0);
  std::filesystem::remove(own + "/model.safetensors");
  models.reload();
  EXPECT_EQ(models.open(0), before);
  EXPECT_EQ(models.open(0), before);  // and is not tried at each request
  std::filesystem::copy(kFolder + "/model.safetensors", own + "/model.safetensors");
  models.reload();
  EXPECT_NE(models.open(0), before);
}

TEST(ServedModels, AreClosedWhenIdleButNotWhileHeld) {
  Models models(served(2), {.keep_seconds = 0.02});
  const Models::Opened held = models.open(0);
  models.open(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  models.close_idle();
  EXPECT_TRUE(models.states()[0].is_open);
  EXPECT_FALSE(models.states()[1].is_open);
}

}  // namespace
}  // namespace seqconv::internal
