#include <gmock/gmock.h>

#include <csignal>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/signals.h"
#include "libtorch/backend/model_folder.h"
#include "support/errors.h"
#include "thread_communicator.h"
#include "tiny_task.h"
#include "train/alignment_choice.h"
#include "train/checkpoint.h"

// Runs with guided alignment, and what a run does for alignments when it ends.
namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

class GuidedRun : public testing::TinyTask {
 protected:
  GuidedRun() {
    config_.training.guided_alignment = 0.5;
    config_.training.accumulate = 3;
    config_.model.dropout = config_.model.attention_dropout = 0.1;
  }

  /// Trains until the end of a batch, where a signal comes.
  void train_until(const TrainRequest& request, int64_t update, int64_t micro_batch) {
    testing::error_of<Interrupted>([&] {
      train(request, [&](const RunSetup&, const Position& position) {
        if (position.update == update && position.micro_batch == micro_batch)
          set_stop_signal(SIGTERM);
      });
    });
    set_stop_signal(0);
  }

  Json alignment_of(const std::string& output) const {
    return Json::parse(read_file(path(output) / "config.json")).value("alignment", Json());
  }
  static Json guided() { return write_options(AlignmentOptions::guided(/*layers=*/1)); }

  std::map<std::string, std::string> state_of(const std::string& output) const {
    return testing::tensors_of(path(output) / "training" / "state.safetensors");
  }
};

TEST_F(GuidedRun, LearnsAndNamesItsHead) {
  config_.training.max_updates = 40;
  config_.schedule.learning_rate = 1e-2;
  train_model(request("run"));
  EXPECT_EQ(alignment_of("run"), guided());
  const auto found = records("run", "train");
  EXPECT_LT(found.back()["alignment_base2"], 0.7 * found.front()["alignment_base2"].get<double>());
  EXPECT_FALSE(records("run", "validation").back().contains("alignment_base2"));
  config_.training.guided_alignment = 0;
  config_.training.max_updates = 1;
  train_model(request("other"));
  EXPECT_FALSE(records("other", "train").back().contains("alignment_base2"));
}

TEST_F(GuidedRun, GoesOnWithTheSameBits) {
  train_model(request("whole"));
  TrainRequest piece = request("pieces");
  train_until(piece, 0, 2);
  EXPECT_EQ(alignment_of("pieces"), guided());
  piece.resume = true;
  train_until(piece, 5, 1);
  train_model(piece);
  EXPECT_TRUE(state_of("whole") == state_of("pieces"));
  const auto wanted = records("whole", "train"), got = records("pieces", "train");
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(wanted[i]["alignment_base2"], got[i]["alignment_base2"]);
  piece.config.training.guided_alignment = 0.25;
  piece.config.training.max_updates = 20;
  EXPECT_THAT(
      testing::error_of([&] { train_model(piece); }),
      HasSubstr("cannot resume: training.guided_alignment was 0.5 when the run began"));
}

TEST_F(GuidedRun, IsTheSameRunInSeveralProcesses) {
  config_.schedule.learning_rate = 1e-4;  // the keys' biases have rounding alone as gradient
  train_model(request("one"));
  testing::run_in_threads(
      3, [&](const auto& communicator) { train_model(request("three"), communicator); });
  testing::run_in_threads(
      3, [&](const auto& communicator) { train_model(request("again"), communicator); });
  EXPECT_TRUE(state_of("three") == state_of("again"));
  const auto wanted = records("one", "train"), got = records("three", "train");
  ASSERT_EQ(wanted.size(), got.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    for (const char* key : {"alignment_base2", "loss_base2", "gradient_norm"}) {
      const double value = wanted[i][key];
      EXPECT_NEAR(got[i][key].get<double>(), value, 1e-5 * value) << key << " of " << i;
    }
}

/// Runs without guidance, whose alignments are chosen.
class AlignmentChoice : public GuidedRun {
 protected:
  AlignmentChoice() {
    config_.training.guided_alignment = 0;
    config_.training.validate_every = 4;
    config_.training.max_updates = 8;
  }

  /// Trains, with `spoil` when the last batch is over; the warnings.
  std::string warnings_of(const std::function<void(const RunSetup&)>& spoil) {
    set_log_level(LogLevel::kWarning);
    ::testing::internal::CaptureStderr();
    train(request("run"), [&](const RunSetup& setup, const Position& position) {
      if (position.update == config_.training.max_updates)
        spoil(setup);
    });
    set_log_level(LogLevel::kError);
    return ::testing::internal::GetCapturedStderr();
  }

  Json choice_for(const std::filesystem::path& model) {
    const TrainRequest fresh = request("fresh" + model.filename().string());
    const RunSetup setup = set_up_run(fresh);
    return write_options(
        choose_alignment(
            *load_model(model).model, *setup.data.train.samples, *setup.data.valid->samples)
            .options);
  }
};

TEST_F(AlignmentChoice, IsMadeOfTheParametersThatAreWritten) {
  train(request("run"), [&](const RunSetup& setup, const Position& position) {
    if (position.update < 5)
      return;
    const at::NoGradGuard no_grad;  // no gain: the best stays that of update 4
    for (at::Tensor parameter : setup.task->model()->parameters())
      parameter.mul_(-3);
  });
  ASSERT_EQ(update_of_parameters(path("run") / "model.safetensors"), 4);
  const Json last = choice_for(path("run") / kLastParameters), best = choice_for(path("run"));
  EXPECT_NE(last, best) << "or this tells nothing";
  EXPECT_EQ(alignment_of("run"), best);
}

TEST_F(AlignmentChoice, IsMadeUpForWhereARunEndedWithoutIt) {
  train_model(request("run"));
  const Json chosen = alignment_of("run");
  ASSERT_TRUE(chosen.is_object());
  Json config = Json::parse(read_file(path("run") / "config.json"));
  config.erase("alignment");
  folder_.write("run/config.json", config.dump());
  TrainRequest again = request("run");
  again.resume = true;
  train_model(again);
  EXPECT_EQ(records("run", "end").size(), 1u) << "there was nothing to train";
  EXPECT_EQ(alignment_of("run"), chosen);
}

TEST_F(AlignmentChoice, FailsWithoutHarmToTheRun) {
  const std::string said =
      warnings_of([&](const RunSetup&) { folder_.write("run/config.json", "{"); });
  EXPECT_THAT(
      said,
      HasSubstr("the model is written, but which of its heads make alignments could not be "
                "chosen: "));
  EXPECT_EQ(records("run", "end").back()["reason"], "max_updates");
}

TEST_F(AlignmentChoice, IsMadeAtAStopToo) {
  train_until(request("run"), 6, 0);
  EXPECT_EQ(records("run", "end").back()["reason"], "interrupted");
  EXPECT_EQ(alignment_of("run"), choice_for(path("run")));
}

}  // namespace
}  // namespace seqconv::internal
