#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "support/errors.h"
#include "thread_communicator.h"
#include "tiny_task.h"
#include "train/agreement.h"

/// An optimiser's state of which each process keeps its share.
namespace seqconv::internal {
namespace {

using testing::run_in_threads;
using testing::Through;

TEST(FlatShares, AreAsEvenAsMultiplesOfTheirUnitCanBe) {
  EXPECT_THAT(share_ends(160, 1), ::testing::ElementsAre(160));
  EXPECT_THAT(share_ends(160, 4), ::testing::ElementsAre(32, 80, 112, 160));
  EXPECT_THAT(share_ends(32, 3), ::testing::ElementsAre(0, 16, 32));
  EXPECT_THAT(
      testing::error_of<Error>([] { share_ends(40, 2); }),
      ::testing::HasSubstr("multiple of 16 elements are shared out"));
}

class Shards : public testing::TinyTask {
 protected:
  Shards() {
    config_.model.dropout = 0.1;
    config_.training.accumulate = 5;
    config_.training.max_updates = 8;
    config_.training.log_every = 1;
    config_.training.validate_every = 3;
    config_.training.save_every = 4;
    config_.training.shard_optimizer = true;
    config_.optimizer.clip_norm = 0.5;
  }

  void train_together(int64_t size, const TrainRequest& request) {
    const auto work = [&](const auto& communicator) { train_model(request, communicator); };
    run_in_threads(size, work, through_);
  }

  /// States, models and what was noted of the way there are the same bytes.
  void expect_same(const std::string& one, const std::string& other) {
    const auto files = [&](const std::string& output) {
      const RunFolder folder{path(output)};
      return std::pair(
          testing::tensors_of(folder.state()),
          testing::tensors_of(folder.root / "model.safetensors"));
    };
    EXPECT_TRUE(files(one) == files(other)) << one << ' ' << other;
    const auto losses = [&](const std::string& output) {
      std::vector<double> all;
      for (const std::string kind : {"train", "validation"})
        for (const Json& record : records(output, kind))
          all.push_back(record["loss_base2"]);
      return all;
    };
    EXPECT_EQ(losses(one), losses(other));
  }

  Through through_ = Through::kMemory;
};

/// Options with which every process would keep a state of each kind.
void vary(TrainConfig& config, OptimizerKind kind) {
  config.optimizer.kind = kind;
  config.training.ema_decay = kind == OptimizerKind::kAdam ? 0.9 : 0;
}

TEST_F(Shards, KeepTheirSharesOfTheOptimizersStateWithTheSameBits) {
  for (const auto kind : {OptimizerKind::kAdam, OptimizerKind::kNag}) {
    vary(config_, kind);
    // Shares that are even and those that are not.
    for (const int64_t size :
         kind == OptimizerKind::kAdam ? std::vector<int64_t>{1, 2, 5} : std::vector<int64_t>{3}) {
      const std::string name = concat(enum_name(kind), size);
      config_.training.shard_optimizer = false;
      train_together(size, request(name));
      config_.training.shard_optimizer = true;
      train_together(size, request(name + "cut"));
      expect_same(name, name + "cut");
    }
  }
}

TEST_F(Shards, GoOnFromSharesWithoutThemAndWithAnotherNumber) {
  vary(config_, OptimizerKind::kAdam);
  const auto piece = [&](const std::string& output, int64_t size, bool cut, int64_t updates) {
    config_.training.shard_optimizer = cut;
    config_.training.max_updates = updates;
    TrainRequest piece = request(output);
    piece.resume = exists(path(output));
    train_together(size, piece);
  };
  for (const int64_t size : {2, 3}) {
    const std::string whole = concat("whole", size);
    const std::string cut = concat("cut", size);
    piece(whole, 2, false, 3);
    piece(whole, size, false, 6);
    piece(cut, 2, true, 3);
    piece(cut, size, false, 4);
    piece(cut, size, true, 6);
    piece(whole, 4, false, 7);
    piece(cut, 4, true, 7);
    EXPECT_TRUE(
        testing::tensors_of(RunFolder{path(whole)}.state()) ==
        testing::tensors_of(RunFolder{path(cut)}.state()));
  }
}

TEST_F(Shards, TravelByProcessGroupsOfLibTorch) {
  vary(config_, OptimizerKind::kAdam);
  constexpr int64_t kSize = 3;
  through_ = Through::kMemory;
  train_together(kSize, request("memory"));
  for (const auto through : {Through::kTorch, Through::kTorchAndHost}) {
    const std::string name = through == Through::kTorch ? "torch" : "hosted";
    through_ = through;
    train_together(kSize, request(name));
    expect_same("memory", name);
  }
}

TEST_F(Shards, AreWatchedByAllForNumbersThatAreNotFinite) {
  run_in_threads(3, [&](const std::shared_ptr<Communicator>& processes) {
    const RunSetup setup = set_up_run(request("run"), processes);
    FlatParameters parameters(*setup.task->model());
    const FlatShares shares(processes, parameters, /*wanted=*/true);
    Optimizer optimizer(config_.optimizer, shares.own(parameters.values()));
    const RunTensors tensors{parameters, optimizer, {}, shares};
    EXPECT_FALSE(find_unsound(tensors));
    const at::Tensor& last = optimizer.tensors().at(Optimizer::kSecondMoment);
    if (processes->rank() == 2)
      last[last.numel() - 1] = NAN;
    const auto own = find_unsound(tensors);
    EXPECT_EQ(own.has_value(), processes->rank() == 2);
    EXPECT_EQ(
        lowest_fault(*processes, own ? own->name : ""),
        concat("optimizer.second_moment of parameter '", parameters.slots().back().name, "'"));
  });
}

TEST_F(Shards, AreNotSavedWhenOnesNumbersAreNotFinite) {
  config_.training.save_every = 2;
  config_.training.max_updates = 4;
  const auto diverge = [&](const std::shared_ptr<Communicator>& processes) {
    train(
        request("run"),
        [&](const RunSetup& setup, const Position& position) {
          const at::NoGradGuard no_grad;
          if (position.update == 4 && processes->rank() == 2)
            setup.task->model()->parameters().back().fill_(NAN);
        },
        processes);
  };
  EXPECT_THAT(
      testing::error_of<Error>([&] { run_in_threads(3, diverge); }),
      ::testing::HasSubstr("training has diverged: after its last update, 4"));
  EXPECT_EQ(read_state(RunFolder{path("run")}.state()).position.update, 2);
}

}  // namespace
}  // namespace seqconv::internal
