#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <csignal>

#include "base/files.h"
#include "base/options.h"
#include "base/signals.h"
#include "libtorch/backend/model_folder.h"
#include "support/errors.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

/// Where a run is stopped.
struct Moment {
  int64_t update;
  int64_t micro_batch;
};

class Resume : public testing::TinyTask {
 protected:
  Resume() {
    // Everything random, odd and stateful at once.
    config_.model.dropout = 0.1;
    config_.model.input_dropout = 0.1;
    config_.model.weight_dropout = 0.1;
    config_.training.accumulate = 3;
    config_.training.validate_every = 5;
    config_.training.save_every = 4;
    config_.training.log_every = 2;
    config_.training.validate_bleu = true;
    config_.optimizer.clip_norm = 0.5;
    config_.optimizer.weight_decay = 1e-3;
  }

  /// Trains into `output`, interrupted at every moment and resumed each time.
  void train_in_pieces(const std::string& output, const std::vector<Moment>& moments) {
    TrainRequest piece = request(output);
    for (const Moment& moment : moments) {
      bool stopped = false;
      const auto stop_there = [&](const RunSetup&, const Position& position) {
        if (position.update == moment.update && position.micro_batch == moment.micro_batch &&
            !stopped) {
          stopped = true;
          set_stop_signal(SIGTERM);
        }
      };
      EXPECT_THAT(
          testing::error_of<Interrupted>([&] { train(piece, stop_there); }), HasSubstr("--resume"));
      set_stop_signal(0);
      piece.resume = true;
    }
    train_model(piece);
  }

  /// Trains by a clock on which each batch takes a tenth of a second; up to `update`.
  static void train_by_clock(const TrainRequest& request, int64_t update) {
    RunSetup setup = set_up_run(request);
    double now = 0;
    setup.clock = [&now] { return now; };
    setup.after_batch = [&](const Position& position) {
      now += 0.1;
      if (position.update == update)
        set_stop_signal(SIGTERM);
    };
    TrainLoop(std::move(setup)).run();
  }

  /// Makes the parameters so bad that no validation after it is a gain.
  static void spoil(const RunSetup& setup) {
    const at::NoGradGuard no_grad;
    for (at::Tensor parameter : setup.task->model()->parameters())
      parameter.mul_(30);
  }

  /// Trains until the end of an update, and gives the message of the stop.
  static std::string stop_of(const TrainRequest& request, int64_t update, int64_t spoilt_at = -1) {
    const auto message = testing::error_of<Interrupted>([&] {
      train(request, [&](const RunSetup& setup, const Position& position) {
        if (position.update == spoilt_at && position.micro_batch == 0)
          spoil(setup);
        if (position.update == update)
          set_stop_signal(SIGTERM);
      });
    });
    set_stop_signal(0);
    return message;
  }

  void expect_same(const std::string& one, const std::string& other) {
    const auto state = [&](const std::string& name) {
      return testing::tensors_of(path(name) / "training" / "state.safetensors");
    };
    EXPECT_TRUE(state(one) == state(other));
    EXPECT_TRUE(
        read_file(path(one) / "model.safetensors") == read_file(path(other) / "model.safetensors"));
    for (const std::string kind : {"train", "validation"}) {
      auto wanted = records(one, kind);
      auto got = records(other, kind);
      for (auto* list : {&wanted, &got})
        for (Json& record : *list) {
          record.erase("elapsed_seconds");
          record.erase("target_tokens_per_second");
        }
      EXPECT_FALSE(wanted.empty());
      EXPECT_EQ(wanted, got) << kind;
    }
  }

  std::string resume_error(const TrainRequest& request) {
    return testing::error_of([&] { train_model(request); });
  }
};

TEST_F(Resume, AStopLeavesAModelAndSaysWhichItIs) {
  TrainRequest piece = request("run");
  EXPECT_THAT(stop_of(piece, 3), HasSubstr("model.safetensors has the parameters of this update"));
  EXPECT_NO_THROW(load_model(path("run")));
  const std::string early = read_file(path("run") / "model.safetensors");
  piece.resume = true;
  EXPECT_THAT(stop_of(piece, 7), HasSubstr("model.safetensors has the parameters of this update"))
      << "which are better than the best of update 5";
  EXPECT_FALSE(read_file(path("run") / "model.safetensors") == early);
  EXPECT_FALSE(std::filesystem::exists(path("run") / kLastParameters));
  const Json validation = records("run", "validation").back();
  EXPECT_EQ(validation["update"], 7);
  EXPECT_EQ(validation["at_stop"], true);
  EXPECT_EQ(validation["best"], true);
}

TEST_F(Resume, TheLastParametersOfAStopGoOnceTheRunHasGoneOn) {
  TrainRequest piece = request("pieces");
  EXPECT_THAT(
      stop_of(piece, 8, /*spoilt_at=*/6),
      HasSubstr("; best model: update 5, model.safetensors; last: update 8, "
                "model.last.safetensors"));
  EXPECT_EQ(update_of_parameters(path("pieces") / "model.safetensors"), 5);
  EXPECT_EQ(update_of_parameters(path("pieces") / kLastParameters), 8);
  const auto last = testing::tensors_of(path("pieces") / kLastParameters);
  EXPECT_NO_THROW(load_model(path("pieces") / kLastParameters));
  EXPECT_EQ(records("pieces", "validation").back()["best"], false);
  piece.resume = true;
  piece.config.training.max_updates = 9;
  train_model(piece);
  EXPECT_EQ(update_of_parameters(path("pieces") / kLastParameters), 9);
  EXPECT_NE(testing::tensors_of(path("pieces") / kLastParameters), last);
  EXPECT_EQ(records("pieces", "validation").size(), 2u) << "that of the stop is taken back";
}

TEST_F(Resume, TheBestThatTheStateKnowsComesBackWhereARunGoesOn) {
  train_model(request("whole"));
  TrainRequest piece = request("pieces");
  stop_of(piece, 7);
  const auto kept = path("pieces") / "training" / "best.safetensors";
  EXPECT_EQ(update_of_parameters(kept), 5);
  EXPECT_EQ(update_of_parameters(path("pieces") / "model.safetensors"), 7);
  piece.resume = true;
  stop_of(piece, 8);
  EXPECT_EQ(update_of_parameters(kept), 5) << "the run itself has not validated update 7";
  train_model(piece);
  EXPECT_FALSE(std::filesystem::exists(kept));
  expect_same("whole", "pieces");
}

TEST_F(Resume, AValidationThatWouldTakeLongIsLeftOutAtAStop) {
  RunSetup setup = set_up_run(request("run"));
  double now = 0;
  setup.clock = [&now] { return now += 70; };  // two looks, before and after a validation
  setup.after_batch = [](const Position& position) {
    if (position.update == 7)
      set_stop_signal(SIGTERM);
  };
  EXPECT_THAT(
      testing::error_of<Interrupted>([&] { TrainLoop(std::move(setup)).run(); }),
      HasSubstr("; best model: update 5, model.safetensors; last: update 7"));
  set_stop_signal(0);
  EXPECT_EQ(records("run", "validation").size(), 1u);
}

TEST_F(Resume, AnEndLeavesTheLastParametersBesideTheBest) {
  train(request("run"), [](const RunSetup& setup, const Position& position) {
    if (position.update == 6 && position.micro_batch == 0)
      spoil(setup);
  });
  EXPECT_EQ(update_of_parameters(path("run") / "model.safetensors"), 5);
  EXPECT_EQ(update_of_parameters(path("run") / kLastParameters), 12);
}

TEST_F(Resume, WithoutValidationTextTheModelOfAStopIsTheLast) {
  config_.data.valid_source = config_.data.valid_target = {};
  config_.training.validate_bleu = false;
  config_.training.validate_every = 0;
  TrainRequest piece = request("run");
  EXPECT_THAT(stop_of(piece, 7), HasSubstr("model.safetensors has the parameters of this update"));
  EXPECT_EQ(update_of_parameters(path("run") / "model.safetensors"), 7);
  EXPECT_FALSE(std::filesystem::exists(path("run") / kLastParameters));
}

TEST_F(Resume, APlanByMinutesIsKeptAndFallsToNothing) {
  config_.training.max_updates = 0;
  config_.training.max_minutes = 0.2;
  config_.schedule.kind = ScheduleKind::kLinear;
  config_.schedule.warmup_share = 0.2;
  train_by_clock(request("whole"), -1);
  TrainRequest piece = request("pieces");
  for (const int64_t update : {1, 9, 20}) {
    EXPECT_THAT(
        testing::error_of<Interrupted>([&] { train_by_clock(piece, update); }),
        HasSubstr("--resume"));
    set_stop_signal(0);
    piece.resume = true;
  }
  train_by_clock(piece, -1);
  const auto last = records("whole", "train").back();
  const auto end = records("whole", "end").back();
  EXPECT_EQ(end["reason"], "max_minutes");
  EXPECT_NEAR(end["update"].get<double>(), 12 / 0.3, 4);
  EXPECT_LT(last["learning_rate"].get<double>(), config_.schedule.learning_rate / 10);
  EXPECT_EQ(records("pieces", "end").back()["update"], end["update"]);
  expect_same("whole", "pieces");
}

TEST_F(Resume, InTheMiddleOfEpochsAndAccumulationsTheBitsAreTheSame) {
  config_.training.threads = 2;
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kNag}) {
    config_.optimizer.kind = kind;
    config_.optimizer.momentum = 0.9;
    const std::string name(enum_name(kind));
    train_model(request(name));
    // Mid-accumulation, at a checkpoint, at a validation, after the first
    // batch of all; with 120 pairs the run goes through several epochs.
    train_in_pieces(name + "-pieces", {{0, 1}, {2, 2}, {4, 0}, {5, 0}, {9, 1}});
    EXPECT_GT(records(name, "train").back()["epoch"], 1);
    expect_same(name, name + "-pieces");
  }
}

TEST_F(Resume, InBFloat16TheBitsAreTheSame) {
  config_.training.precision = Precision::kBFloat16;
  config_.training.threads = 2;
  train_model(request("whole"));
  train_in_pieces("pieces", {{0, 1}, {2, 2}, {5, 0}, {9, 1}});
  expect_same("whole", "pieces");
}

TEST_F(Resume, ARunKeepsItsPrecisionAndAnotherMayBeginWithItsParameters) {
  config_.training.precision = Precision::kBFloat16;
  train_model(request("run"));
  config_.training.precision = Precision::kFloat32;
  TrainRequest changed = request("run");
  changed.resume = true;
  EXPECT_THAT(
      resume_error(changed),
      HasSubstr("cannot resume: training.precision was \"bfloat16\" when the run began and is now "
                "\"float32\", which changes the numbers; set it back, or start another run with "
                "--init-from"));
  TrainRequest tune = request("tune");
  tune.init_from = path("run");
  train_model(tune);
  // What is stored is float32 all the same.
  const auto sizes = [&](const std::string& name) {
    std::map<std::string, size_t> found;
    for (const auto& [key, bytes] :
         testing::tensors_of(path(name) / "training" / "state.safetensors"))
      found[key] = bytes.size();
    return found;
  };
  EXPECT_EQ(sizes("run"), sizes("tune"));
}

TEST_F(Resume, AnInterruptedValidationIsMadeUpFor) {
  train_model(request("whole"));
  // The signal comes with the last batch before a validation: it is seen
  // between two batches of the validation set.
  train_in_pieces("pieces", {{5, 0}, {10, 0}});
  expect_same("whole", "pieces");
}

TEST_F(Resume, AMovingAverageGoesOnToTheBit) {
  config_.training.ema_decay = 0.8;
  train_model(request("whole"));
  // In the middle of an update, between two batches of a validation, during
  // which the model is the average, and at a checkpoint.
  train_in_pieces("pieces", {{0, 1}, {5, 0}, {8, 0}, {10, 0}, {11, 2}});
  expect_same("whole", "pieces");
  const auto state = testing::tensors_of(path("whole") / "training" / "state.safetensors");
  EXPECT_NE(state.at("average"), state.at("parameters"));
}

TEST_F(Resume, AnotherDecayOrAnotherMeasureOfTheBestIsRefused) {
  train_model(request("run"));
  const auto message = [&] {
    TrainRequest changed = request("run");
    changed.resume = true;
    changed.config.training.max_updates = 20;
    return resume_error(changed);
  };
  config_.training.ema_decay = 0.5;
  EXPECT_THAT(
      message(),
      HasSubstr("cannot resume: training.ema_decay was 0.0 when the run began and is now 0.5"));
  config_.training.ema_decay = 0;
  config_.training.best_by = "chrf";
  EXPECT_THAT(message(), HasSubstr("cannot resume: training.best_by was"));
}

TEST_F(Resume, AtTheEndOfAnEpochTheBitsAreTheSame) {
  config_.training.accumulate = 1;
  config_.training.validate_every = 0;
  config_.training.save_every = 0;
  config_.training.max_updates = 0;
  config_.training.max_epochs = 3;
  train_model(request("whole"));
  const auto validations = records("whole", "validation");
  ASSERT_EQ(validations.size(), 3u);
  const int64_t updates = validations[0]["update"];
  train_in_pieces("pieces", {{updates, 0}, {updates + 1, 0}});
  expect_same("whole", "pieces");
}

TEST_F(Resume, ALongerLimitContinuesAFinishedRun) {
  train_model(request("whole"));
  config_.training.max_updates = 5;
  train_model(request("pieces"));
  config_.training.max_updates = 12;
  TrainRequest longer = request("pieces");
  longer.resume = true;
  train_model(longer);
  const auto state = [&](const std::string& name) {
    return testing::tensors_of(path(name) / "training" / "state.safetensors");
  };
  EXPECT_TRUE(state("whole") == state("pieces"));
  // Nothing is left to do: nothing is changed.
  const auto metrics = path("pieces") / "training" / "metrics.jsonl";
  const std::string before = read_file(metrics);
  train_model(longer);
  EXPECT_EQ(read_file(metrics), before);
}

TEST_F(Resume, AChangedSettingIsRefusedByItsKey) {
  train_model(request("run"));
  config_.schedule.learning_rate = 1;
  TrainRequest changed = request("run");
  changed.resume = true;
  EXPECT_THAT(resume_error(changed), HasSubstr("cannot resume: schedule.learning_rate was 0.003"));
}

TEST_F(Resume, ChangedTextIsRefusedAndMovedTextIsNot) {
  train_model(request("run"));
  config_.training.max_updates = 14;
  std::filesystem::rename(path("train.source"), path("moved.source"));
  config_.data.train_source = {path("moved.source")};
  TrainRequest again = request("run");
  again.resume = true;
  EXPECT_NO_THROW(train_model(again));
  config_.training.max_updates = 16;
  write_pairs("valid", 20, 77, /*reversed=*/true);
  again = request("run");
  again.resume = true;
  EXPECT_THAT(
      resume_error(again),
      HasSubstr("the content of data.valid_source is not what the run began with"));
}

TEST_F(Resume, EncodedDataThatWereLostAreEncodedAgain) {
  train_model(request("whole"));
  train_model(request("run"));
  std::filesystem::remove_all(path("run") / "training" / "data");
  config_.training.max_updates = 14;
  for (const std::string name : {"whole", "run"}) {
    TrainRequest again = request(name);
    again.resume = true;
    train_model(again);
  }
  expect_same("whole", "run");
}

TEST_F(Resume, WithoutAStateThereIsNothingToResume) {
  TrainRequest nothing = request("nowhere");
  nothing.resume = true;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(nothing); }),
      HasSubstr("nothing to resume: there is no"));
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
}

TEST_F(Resume, ADamagedStateIsAClearErrorAndStays) {
  train_model(request("run"));
  const auto file = path("run") / "training" / "state.safetensors";
  const std::string whole = read_file(file);
  write_file_atomically(file, whole.substr(0, whole.size() / 3));
  config_.training.max_updates = 20;
  TrainRequest again = request("run");
  again.resume = true;
  EXPECT_THAT(resume_error(again), HasSubstr(file.string()));
  EXPECT_EQ(std::filesystem::file_size(file), whole.size() / 3);
}

TEST_F(Resume, ASignalBeforeTheFirstBatchLeavesAFolderToBeginIn) {
  set_stop_signal(SIGINT);
  EXPECT_THROW(train_model(request("run")), Interrupted);
  set_stop_signal(0);
  EXPECT_NO_THROW(train_model(request("run")));
}

}  // namespace
}  // namespace seqconv::internal
