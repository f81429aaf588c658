#include <gmock/gmock.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/ended_process.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "tiny_task.h"

/// Folders that are used by two, left by a killed run, or damaged.
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a kill is to the files of a run.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

class RunSafety : public testing::TinyTask {
 protected:
  TrainRequest resume(const std::string& output) const {
    TrainRequest again = request(output);
    again.resume = true;
    return again;
  }

  /// Trains until `updates` are made, then leaves everything as it is.
  void train_and_kill(const TrainRequest& request, int64_t updates) {
    const auto kill = [&](const RunSetup&, const Position& position) {
      if (position.update == updates)
        throw Killed();
    };
    EXPECT_THROW(train(request, kill), Killed);
  }

  void expect_same_end(const std::string& one, const std::string& other) {
    for (const char* file : {"training/state.safetensors", "model.safetensors"})
      EXPECT_TRUE(testing::tensors_of(path(one) / file) == testing::tensors_of(path(other) / file))
          << file;
  }

  std::string warnings_of(const TrainRequest& request) {
    set_log_level(LogLevel::kWarning);
    ::testing::internal::CaptureStderr();
    train_model(request);
    set_log_level(LogLevel::kError);
    return ::testing::internal::GetCapturedStderr();
  }

  std::string settings_of(const std::string& output) const {
    return read_file(path(output) / "training" / "config.toml");
  }

  /// The configuration that a run wrote down.
  TrainConfig written_config(const std::string& output) const {
    return read_train_config(load_toml(path(output) / "training" / "config.toml"));
  }
};

using FolderInUse = RunSafety;
using RestartedRun = RunSafety;
using SettingsOfARun = RunSafety;
using DamagedData = RunSafety;

TEST_F(FolderInUse, ASecondRunIsRefusedWhileTheFirstGoesOn) {
  config_.training.save_every = 2;
  train_model(request("whole"));
  const auto wanted = AllOf(
      HasSubstr("'" + path("run").string() + "' is in use"),
      HasSubstr(concat("process ", ::getpid())));
  train(request("run"), [&](const RunSetup&, const Position& position) {
    if (position.update == 1) {  // nothing is saved yet: two fresh starts
      EXPECT_THAT(testing::error_of([&] { train_model(request("run")); }), wanted);
    }
    if (position.update != 3)
      return;
    EXPECT_THAT(testing::error_of([&] { train_model(resume("run")); }), wanted);
    TrainRequest dry = resume("run");
    dry.dry_run = true;
    EXPECT_NO_THROW(train_model(dry));
    EXPECT_NO_THROW(load_model(path("run")));
  });
  expect_same_end("whole", "run");
  EXPECT_EQ(records("whole", "train").size(), records("run", "train").size());
  EXPECT_NO_THROW(train_model(resume("run")));
}

// The first validation comes before the first checkpoint, or after it.
TEST_F(RestartedRun, KilledAtAnyUpdateItGoesOnOrBeginsAgain) {
  config_.training.max_updates = 5;
  for (const int64_t validate_every : {2, 3})
    for (int64_t updates = 1; updates < 5; ++updates) {
      config_.training.validate_every = validate_every;
      config_.training.save_every = validate_every == 2 ? 1000 : 2;
      const std::string whole = concat("whole", validate_every);
      if (updates == 1)
        train_model(request(whole));
      const std::string name = concat("run", validate_every, "-", updates);
      train_and_kill(request(name), updates);
      const bool begins = testing::succeeds([&] { train_model(request(name)); });
      const bool goes_on = testing::succeeds([&] { train_model(resume(name)); });
      EXPECT_TRUE(begins || goes_on) << name;
      expect_same_end(whole, name);
    }
}

TEST_F(RestartedRun, ADiskThatIsTooFullForTheStateLeavesNoModelEither) {
  config_.training.validate_every = 2;
  config_.training.save_every = 4;
  train_model(request("whole"));
  const auto model = fs::file_size(path("whole") / "model.safetensors");
  {
    const testing::FileSizeLimit limit(model + 1000);
    EXPECT_THAT(
        testing::error_of([&] { train_model(request("run")); }), HasSubstr("state.safetensors"));
  }
  EXPECT_FALSE(fs::exists(path("run") / "model.safetensors"));
  train_model(request("run"));
  expect_same_end("whole", "run");
}

TEST_F(RestartedRun, AModelWithoutAStateStaysAndTheMessageSaysTheWayOut) {
  train_model(request("run"));
  fs::remove(path("run") / "training" / "state.safetensors");
  const std::string model = read_file(path("run") / "model.safetensors");
  for (const TrainRequest& again : {request("run"), resume("run")})
    EXPECT_THAT(
        testing::error_of<UsageError>([&] { train_model(again); }),
        AllOf(
            HasSubstr("already holds a model"),
            HasSubstr("--init-from"),
            HasSubstr("move the files of this one away")));
  EXPECT_TRUE(model == read_file(path("run") / "model.safetensors"));
  fs::remove(path("run") / "model.safetensors");
  EXPECT_THAT(
      warnings_of(request("run")), HasSubstr("checkpoints' holds checkpoints of another run"));
}

/// Names of what is in the folder of checkpoints, and their sizes.
class RunsInOneFolder : public RestartedRun {
 protected:
  RunsInOneFolder() {
    config_.training.save_every = 2;
    config_.training.keep_last = 10;
    config_.training.max_updates = 8;
    train_model(request("run"));
  }

  /// "2 4 6" for the checkpoints of these updates, with the marks of files
  /// that were set aside.
  std::string checkpoints() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path("run") / "training" / "checkpoints"))
      names.insert(entry.path().stem().string());
    std::string all;
    for (const std::string& name : names)
      all += concat(all.empty() ? "" : " ", name.substr(name.find_first_not_of("update-0")));
    return all;
  }

  std::string content(const std::string& stem) const {
    return read_file(
        path("run") / "training" / "checkpoints" / concat("update-0000000", stem, ".safetensors"));
  }

  void move_model_and_state_away() {
    for (const char* file : {"model.safetensors", "training/state.safetensors"})
      fs::remove(path("run") / file);
  }
};

TEST_F(RunsInOneFolder, KeepTheLastOfThisOneAndAllOfTheOther) {
  move_model_and_state_away();
  const std::string four = content("4");
  const std::string records = read_file(path("run") / "training" / "metrics.jsonl");
  config_.training.seed = 2;
  config_.training.max_updates = 7;
  config_.training.save_every = 3;
  config_.training.keep_last = 2;
  train_model(request("run"));  // saves 3, 6 and 7
  EXPECT_EQ(checkpoints(), "2 4 6 6.other-1 7 8");
  EXPECT_TRUE(four == content("4"));
  EXPECT_FALSE(content("6") == content("6.other-1"));
  EXPECT_TRUE(records == read_file(path("run") / "training" / "metrics.other-1.jsonl"));
  // It knows its own ones when it goes on.
  config_.training.max_updates = 9;
  EXPECT_THAT(
      warnings_of(resume("run")), HasSubstr("does not count as its own, from update 2 to 8"));
  EXPECT_EQ(checkpoints(), "2 4 6.other-1 7 8 9");
}

TEST_F(RunsInOneFolder, AStateThatWasPutBackCountsThoseThatItKnows) {
  fs::copy_file(path("run") / "training" / "state.safetensors", path("at-8"));
  config_.training.max_updates = 14;
  train_model(resume("run"));
  EXPECT_EQ(checkpoints(), "2 4 6 8 10 12 14");
  fs::copy_file(
      path("at-8"),
      path("run") / "training" / "state.safetensors",
      fs::copy_options::overwrite_existing);
  config_.training.save_every = 5;
  config_.training.keep_last = 2;
  config_.training.max_updates = 15;
  EXPECT_THAT(
      warnings_of(resume("run")), HasSubstr("does not count as its own, from update 10 to 14"));
  // 10 came to the same numbers once more: it is this run's now.
  EXPECT_EQ(checkpoints(), "10 12 14 15");
}

TEST_F(RestartedRun, WhatAKilledSaveLeftGoesWithTheNextStartOrSave) {
  config_.training.save_every = 2;
  train_model(request("run"));
  const std::string left =
      concat("run/training/checkpoints/update-00000008.safetensors.tmp-", testing::ended_process());
  folder_.write(left, "half");
  config_.training.max_updates = 14;
  train_model(resume("run"));
  EXPECT_FALSE(fs::exists(path(left)));
  config_.training.max_updates = 18;
  train(resume("run"), [&](const RunSetup&, const Position& position) {
    if (position.update == 15)
      folder_.write(left, "half");
    if (position.update == 17) {
      EXPECT_FALSE(fs::exists(path(left)));
    }
  });
}

TEST_F(SettingsOfARun, AResumedRunWritesDownWhatTheUserChangedAndNothingElse) {
  join_digits("train.source");
  config_.text.subword = Subword::kBpe;
  config_.text.subword_size = 4;
  train_model(request("run"));
  const std::string before = settings_of("run");
  EXPECT_THAT(before, HasSubstr("subword_size = 4"));
  config_.training.max_updates = 14;
  train_model(resume("run"));
  std::string after = settings_of("run");
  const size_t changed = after.find("max_updates = 14");
  ASSERT_NE(changed, std::string::npos);
  EXPECT_EQ(after.replace(changed, 16, "max_updates = 12"), before);
  TrainRequest from_file = resume("run");
  from_file.config = written_config("run");
  from_file.config.training.max_updates = 16;
  EXPECT_NO_THROW(train_model(from_file));
}

TEST_F(SettingsOfARun, ATextOfAnotherModelCanBeGivenEitherWay) {
  train_model(request("base"));
  config_.text.min_count = 2;  // not used
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  train_model(tune);
  const std::string before = settings_of("tuned");
  EXPECT_THAT(before, HasSubstr("min_count = 1"));
  TrainRequest from_file = resume("tuned");
  from_file.config = written_config("tuned");
  for (const TrainRequest& again : {from_file, resume("tuned"), from_file}) {
    EXPECT_NO_THROW(train_model(again));
    EXPECT_EQ(settings_of("tuned"), before);
    TrainRequest dry = again;
    dry.dry_run = true;
    EXPECT_NO_THROW(train_model(dry));
  }
  from_file.config.text.min_count = 3;
  EXPECT_THAT(
      testing::error_of([&] { train_model(from_file); }), HasSubstr("text.min_count was 2"));
}

TEST_F(DamagedData, OneBitInAnyFileIsNoticedAndTheDataEncodedAgain) {
  train_model(request("run"));
  fs::copy(path("run"), path("start"), fs::copy_options::recursive);
  config_.training.max_updates = 14;
  EXPECT_EQ(warnings_of(resume("run")), "");
  int64_t files = 0;
  for (const auto& entry : fs::directory_iterator(path("start") / "training" / "data")) {
    ++files;
    const fs::path name = entry.path().filename();
    SCOPED_TRACE(name);
    const std::string whole = read_file(entry.path());
    for (const size_t place : {whole.size() / 4, whole.size() / 2}) {
      fs::remove_all(path("damaged"));
      fs::copy(path("start"), path("damaged"), fs::copy_options::recursive);
      const fs::path file = path("damaged") / "training" / "data" / name;
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ 1);
      write_file_atomically(file, damaged);
      EXPECT_THAT(
          warnings_of(resume("damaged")),
          AllOf(HasSubstr(name), HasSubstr("damaged"), HasSubstr("the data are encoded again")));
      EXPECT_TRUE(read_file(file) == whole);
      expect_same_end("run", "damaged");
    }
  }
  EXPECT_EQ(files, 5);  // four stores and the stamp
}

TEST_F(DamagedData, ARunThatBeginsAgainNoticesToo) {
  train_and_kill(request("run"), 1);
  const fs::path file = path("run") / "training/data/train.source.tokens";
  std::string damaged = read_file(file);
  damaged[damaged.size() / 2] ^= 4;
  write_file_atomically(file, damaged);
  EXPECT_THAT(warnings_of(request("run")), HasSubstr("train.source.tokens is damaged"));
  config_.training.max_updates = 12;
  train_model(request("whole"));
  expect_same_end("whole", "run");
}

TEST_F(DamagedData, DataOfOlderProgramsHaveNoChecksumsAndAreTaken) {
  train_model(request("run"));
  const fs::path file = path("run") / "training/data/stamp.json";
  Json stamp = Json::parse(read_file(file));
  stamp.erase("checksum");
  stamp.erase("files");
  write_file_atomically(file, stamp.dump());
  config_.training.max_updates = 14;
  EXPECT_EQ(warnings_of(resume("run")), "");
  EXPECT_EQ(read_file(file), stamp.dump());
}

}  // namespace
}  // namespace seqconv::internal
