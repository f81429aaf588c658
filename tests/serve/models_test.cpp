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
