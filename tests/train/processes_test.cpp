#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/options.h"
#include "base/signals.h"
#include "support/errors.h"
#include "thread_communicator.h"
#include "tiny_task.h"
#include "train/agreement.h"
#include "train/processes/batch_share.h"

namespace seqconv::internal {
namespace {

using testing::run_in_threads;
using testing::Through;

TEST(BatchShare, EveryBatchOfAnEpochIsTakenOnceByWhomeverItIsShared) {
  std::vector<uint32_t> order(23);
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<uint32_t>(i * 7 % 23);
  for (const int64_t per_update : {1, 4, 5, 40})
    for (const int64_t size : {1, 2, 3, 4}) {
      std::vector<uint32_t> taken;
      for (int64_t update = 0; update * per_update < 23; ++update) {
        std::vector<UpdateBatch> all;
        for (int64_t rank = 0; rank < size; ++rank)
          for (const UpdateBatch& batch : batches_of(order, per_update, update, rank, size)) {
            EXPECT_EQ(batch.place % size, rank);
            all.push_back(batch);
          }
        std::ranges::sort(all, {}, &UpdateBatch::place);
        EXPECT_EQ(static_cast<int64_t>(all.size()), update_size(23, per_update, update));
        for (size_t place = 0; place < all.size(); ++place) {
          EXPECT_EQ(all[place].place, static_cast<int64_t>(place));
          taken.push_back(all[place].index);
        }
      }
      EXPECT_EQ(taken, order);
    }
}

TEST(BatchShare, NoProcessHasMoreThanOneBatchMoreThanAnother) {
  const std::vector<uint32_t> order(10);
  std::vector<size_t> shares;
  for (int64_t rank = 0; rank < 4; ++rank)
    shares.push_back(batches_of(order, 10, 0, rank, 4).size());
  EXPECT_THAT(shares, ::testing::ElementsAre(3, 3, 2, 2));
}

TEST(Agreement, TheFirstKeyThatDiffersIsNamed) {
  const Json one = {{"a", 1}, {"model", {{"dim", 8}, {"heads", {1, 2}}}}};
  Json other = one;
  EXPECT_EQ(differing_key(one, other), "");
  other["model"]["heads"] = {1, 3};
  EXPECT_EQ(differing_key(one, other), "model.heads");
  other["model"]["dim"] = 16;
  EXPECT_EQ(differing_key(one, other), "model.dim");
  other = one;
  other["more"] = true;
  EXPECT_EQ(differing_key(one, other), "more");
  EXPECT_EQ(differing_key(other, one), "more");
}

TEST(Agreement, AllFailWithTheFaultOfTheLowestRankThatHasOne) {
  std::vector<std::string> said(4);
  run_in_threads(4, [&](const std::shared_ptr<Communicator>& processes) {
    const auto rank = static_cast<size_t>(processes->rank());
    EXPECT_NO_THROW(fail_together(*processes, ""));
    said[rank] = testing::error_of<UsageError>(
        [&] { fail_together(*processes, rank < 2 ? "" : "fault " + std::to_string(rank)); });
  });
  EXPECT_THAT(said, ::testing::Each("fault 2"));
}

/// Notes what is sent, and what it was then.
class Recorder : public SingleProcess {
 public:
  int64_t size() const override { return 2; }
  using SingleProcess::start_sum;
  void start_sum(std::span<float> bucket) override {
    started.push_back(bucket);
    sent.emplace_back(bucket.begin(), bucket.end());
  }

  std::vector<std::span<float>> started;
  std::vector<std::vector<float>> sent;
};

class Processes : public testing::TinyTask {
 protected:
  Processes() {
    config_.model.dropout = 0.1;
    config_.model.weight_dropout = 0.1;
    config_.training.accumulate = 5;
    config_.training.max_updates = 12;
    config_.training.validate_every = 8;
    config_.training.validate_bleu = true;
    config_.optimizer.clip_norm = 0.5;
    // The keys' biases have no gradient but rounding, of which Adam makes steps
    // as long as the rate: so it is low.
    config_.schedule.learning_rate = 1e-4;
    config_.schedule.warmup_start = 1e-7;
  }

  void train_together(int64_t size, const TrainRequest& request) {
    run(size, [&](const auto& communicator) { train_model(request, communicator); });
  }

  void run(int64_t size, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
    run_in_threads(size, work, through_);
  }

  at::Tensor state(const std::string& output, const std::string& name) {
    const std::string bytes =
        testing::tensors_of(path(output) / "training" / "state.safetensors").at(name);
    at::Tensor values = at::empty({static_cast<int64_t>(bytes.size() / sizeof(float))});
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(values.mutable_data_ptr()));
    return values;
  }

  void expect_close(const std::string& one, const std::string& other) {
    for (const std::string kind : {"train", "validation"}) {
      const auto wanted = records(one, kind);
      const auto got = records(other, kind);
      ASSERT_FALSE(wanted.empty());
      ASSERT_EQ(wanted.size(), got.size());
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(wanted[i]["target_tokens"], got[i]["target_tokens"]);
        EXPECT_EQ(wanted[i]["epoch"], got[i]["epoch"]);
        EXPECT_EQ(wanted[i].value("bleu", 0.0), got[i].value("bleu", 0.0));
        for (const char* key : {"loss_base2", "nll_base2"}) {
          const double value = wanted[i][key];
          EXPECT_NEAR(value, got[i][key].get<double>(), 1e-6 * value)
              << kind << ' ' << i << ' ' << key;
        }
      }
    }
    const double distance =
        (state(one, "parameters") - state(other, "parameters")).abs().max().item<double>();
    EXPECT_LE(distance, 2e-5);
  }

  Through through_ = Through::kMemory;
};

/// Whatever they speak through.
class ProcessesThrough : public Processes, public ::testing::WithParamInterface<Through> {
 protected:
  ProcessesThrough() { through_ = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(
    Communicators, ProcessesThrough, ::testing::Values(Through::kMemory, Through::kTorch));

TEST_F(Processes, WhatTheBackwardPassCompletesLeavesBeforeItsEnd) {
  const RunSetup setup = set_up_run(request("run"));
  FlatParameters parameters(*setup.task->model());
  const auto recorder = std::make_shared<Recorder>();
  GradientSum sum(
      *setup.task->model(),
      parameters,
      recorder,
      /*bucket_elements=*/500);
  const Batcher batches(setup.data.train.samples, config_.batching, 1);
  UpdateSums sums;
  const auto accumulate = [&] {
    accumulate_batch(*setup.task->model(), batches.batch(0), {}, {.seed = 1}, sums);
  };
  accumulate();
  EXPECT_TRUE(recorder->started.empty());  // more is to come
  sum.start_with_backward();
  accumulate();
  EXPECT_GT(recorder->started.size(), 3u);
  sum.finish(sums);
  // Together they are the whole buffer, from its end on.
  const float* end =
      parameters.gradients().const_data_ptr<float>() + parameters.gradients().numel();
  for (size_t i = 0; i < recorder->started.size(); ++i) {
    const auto bucket = recorder->started[i];
    EXPECT_EQ(bucket.data() + bucket.size(), end);
    end = bucket.data();
    // Nothing was added to it after it had left.
    EXPECT_TRUE(std::ranges::equal(bucket, recorder->sent[i])) << i;
  }
  EXPECT_EQ(end, parameters.gradients().const_data_ptr<float>());
}

TEST_P(ProcessesThrough, AnUpdatesGradientIsThatOfOneProcess) {
  const auto gradient = [&](int64_t size) {
    at::Tensor result;
    TrainRequest fresh = request("gradient" + std::to_string(size));
    run(size, [&](const std::shared_ptr<Communicator>& processes) {
      const RunSetup setup = set_up_run(fresh, processes);
      FlatParameters parameters(*setup.task->model());
      GradientSum sum(*setup.task->model(), parameters, processes, 500);
      const Batcher batches(setup.data.train.samples, config_.batching, 1);
      UpdateSums sums;
      const auto own = batches_of(batches.order(1), 5, 0, processes->rank(), processes->size());
      for (const UpdateBatch& batch : own) {
        if (&batch == &own.back())
          sum.start_with_backward();
        accumulate_batch(
            *setup.task->model(),
            batches.batch(batch.index),
            {},
            {.seed = 1, .micro_batch = static_cast<uint64_t>(batch.place)},
            sums);
      }
      sum.finish(sums);
      if (processes->is_first())
        result = parameters.gradients().clone();
    });
    return result;
  };
  const at::Tensor wanted = gradient(1);
  const double norm = gradient_norm(wanted);
  for (const int64_t size : {2, 4, 7})  // of seven some have no batch
    EXPECT_LE(gradient_norm(gradient(size) - wanted), 1e-6 * norm) << size;
}

TEST_P(ProcessesThrough, AllKnowOfALossThatIsNotFiniteInOne) {
  run(3, [&](const std::shared_ptr<Communicator>& processes) {
    TranslationModel model(config_.model, 10, 10, /*seed=*/1);
    FlatParameters parameters(*model);
    GradientSum sum(*model, parameters, processes);
    UpdateSums sums = {.loss = 0.5, .target_tokens = processes->rank() + 1};
    sums.broken = processes->rank() == 1 ? 1 : 0;
    sum.finish(sums);
    EXPECT_EQ(sums.broken, 1);
    EXPECT_EQ(sums.target_tokens, 6);
    EXPECT_EQ(sums.loss, 1.5);
  });
}

TEST_P(ProcessesThrough, TrainLikeOneWithTheSameBatchesAnUpdate) {
  train_model(request("one"));
  train_together(3, request("three"));  // which share five batches
  expect_close("one", "three");
}

TEST_P(ProcessesThrough, AllStopAfterTheUpdateInWhichOneGotASignal) {
  const auto interrupted = [&](const std::string& output, int64_t size, bool resume) {
    TrainRequest piece = request(output);
    piece.resume = resume;
    return testing::error_of<Interrupted>([&] {
      run(size, [&](const auto& communicator) {
        train(
            piece,
            [&](const RunSetup&, const Position& position) {
              if (position.update == 6 && communicator->rank() == size - 1)
                set_stop_signal(SIGTERM);
            },
            communicator);
      });
    });
  };
  train_together(2, request("whole"));
  train_model(request("one"));
  EXPECT_THAT(interrupted("pieces", 2, false), ::testing::HasSubstr("the state is saved"));
  const Position stopped = read_state(path("pieces") / "training" / "state.safetensors").position;
  EXPECT_EQ(stopped.micro_batch, 0);
  // Where asking is dear, it is done after every eighth.
  EXPECT_EQ(stopped.update, GetParam() == Through::kTorch ? 8 : 6);
  set_stop_signal(0);
  std::filesystem::copy(path("pieces"), path("others"), std::filesystem::copy_options::recursive);
  TrainRequest rest = request("pieces");
  rest.resume = true;
  train_together(2, rest);
  EXPECT_TRUE(state("whole", "parameters").equal(state("pieces", "parameters")));
  EXPECT_TRUE(
      state("whole", "optimizer.second_moment").equal(state("pieces", "optimizer.second_moment")));
  rest.output = path("others");
  train_together(4, rest);
  expect_close("one", "others");
}

TEST_F(Processes, ValidateTogetherAtAStopAndTakeItBack) {
  config_.training.validate_every = 4;
  config_.training.ema_decay = 0.9;  // cut too: using it takes all processes
  config_.training.shard_optimizer = true;
  train_together(2, request("whole"));
  TrainRequest piece = request("pieces");
  EXPECT_THAT(
      testing::error_of<Interrupted>([&] {
        run(2, [&](const auto& communicator) {
          train(
              piece,
              [&](const RunSetup&, const Position& position) {
                if (position.update == 6 && communicator->rank() == 1)
                  set_stop_signal(SIGTERM);
              },
              communicator);
        });
      }),
      ::testing::HasSubstr("model.safetensors has the parameters of this update"));
  set_stop_signal(0);
  const auto validations = records("pieces", "validation");
  ASSERT_EQ(validations.size(), 2u);
  EXPECT_EQ(validations[1].value("at_stop", false), true);
  EXPECT_LT(validations[1]["loss_base2"], validations[0]["loss_base2"]);
  EXPECT_EQ(update_of_parameters(path("pieces") / "model.safetensors"), 6);
  EXPECT_EQ(update_of_parameters(path("pieces") / "training" / "best.safetensors"), 4);
  piece.resume = true;
  train_together(2, piece);
  EXPECT_FALSE(std::filesystem::exists(path("pieces") / "training" / "best.safetensors"));
  EXPECT_EQ(records("whole", "validation").size(), records("pieces", "validation").size());
  EXPECT_EQ(
      testing::tensors_of(path("whole") / "model.safetensors"),
      testing::tensors_of(path("pieces") / "model.safetensors"));
}

TEST_P(ProcessesThrough, NobodyLeavesWhileTheFirstStillWrites) {
  constexpr int64_t kLast = 16;  // where asking is dear, it is done here too
  config_.training.max_updates = kLast + 4;
  for (const bool validating : {false, true}) {
    config_.training.validate_every = validating ? 8 : 1000;
    const TrainRequest fresh = request(validating ? "validating" : "training");
    const auto state = fresh.output / "training" / "state.safetensors";
    std::atomic<int> left = 0;
    // A writer waits for who reads a pipe.
    std::thread reader([&] {
      while (!std::filesystem::is_fifo(state))
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::ifstream written(state, std::ios::binary);
      char byte = 0;
      EXPECT_TRUE(written.read(&byte, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      EXPECT_EQ(left, 0);
      while (written.read(&byte, 1))
        ;
    });
    EXPECT_THROW(
        run(3,
            [&](const auto& communicator) {
              try {
                train(
                    fresh,
                    [&](const RunSetup&, const Position& position) {
                      if (position.update != kLast || communicator->rank() != 2)
                        return;
                      std::filesystem::remove(state);
                      ASSERT_EQ(::mkfifo(state.c_str(), 0600), 0);
                      set_stop_signal(SIGTERM);
                    },
                    communicator);
              } catch (const Interrupted&) {
                ++left;
                throw;
              }
            }),
        Interrupted);
    set_stop_signal(0);
    reader.join();
    EXPECT_EQ(left, 3);
  }
}

TEST_P(ProcessesThrough, GoOnInTheMiddleOfAnUpdateThatOneBegan) {
  train_model(request("one"));
  EXPECT_THAT(
      testing::error_of<Interrupted>([&] {
        train(request("pieces"), [](const RunSetup&, const Position& position) {
          if (position.update == 3 && position.micro_batch == 2)
            set_stop_signal(SIGTERM);
        });
      }),
      ::testing::HasSubstr("the state is saved"));
  set_stop_signal(0);
  TrainRequest rest = request("pieces");
  rest.resume = true;
  train_together(3, rest);
  expect_close("one", "pieces");
}

TEST_F(Processes, BeginWithTheModelThatTheyAreGiven) {
  train_model(request("given"));
  config_.training.max_updates = 8;
  TrainRequest tuned = request("one");
  tuned.init_from = path("given");
  train_model(tuned);
  tuned.output = path("two");
  train_together(2, tuned);
  expect_close("one", "two");
}

TEST_F(Processes, TrainALanguageModelTogether) {
  const TrainConfig translation = config_;
  config_ = TrainConfig::defaults(Task::kLanguageModel);
  config_.training = translation.training;
  config_.training.validate_bleu = false;
  config_.schedule = translation.schedule;
  config_.text.subword = Subword::kNone;
  config_.model.dim = 32;
  config_.model.ffn_dim = 64;
  config_.model.decoder = translation.model.decoder;
  config_.batching.max_tokens = 64;
  config_.data.stream.block_tokens = 12;
  config_.data.train = {path("train.target")};
  config_.data.valid = {path("valid.target")};
  train_model(request("one"));
  train_together(2, request("two"));
  expect_close("one", "two");
}

}  // namespace
}  // namespace seqconv::internal
