#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/log.h"
#include "base/options.h"
#include "support/device_calls.h"
#include "support/errors.h"
#include "support/meta_kernels.h"
#include "support/small_memory.h"
#include "thread_communicator.h"
#include "tiny_task.h"
#include "train/updates.h"

/// Updates on a device, whose numbers are read when they are logged.
namespace seqconv::internal {
namespace {

using ::testing::IsEmpty;

/// A run's parts, with the updates of one kind.
struct SmallRun {
  SmallRun(
      const TrainConfig& run_config,
      RunSetup run_setup,
      std::unique_ptr<Updates> (*make)(const UpdateParts&),
      LossScaling scaling = {},
      const Position& begin = {})
      : config(run_config),
        setup(std::move(run_setup)),
        parameters(*setup.task->model()),
        optimizer(config.optimizer, parameters.values()),
        average(config.training.average(), parameters.values()),
        gradients(*setup.task->model(), parameters, setup.communicator),
        batches(setup.data.train.samples, config.batching, 1),
        position(begin),
        updates(make(
            {config,
             *setup.task->model(),
             parameters,
             optimizer,
             average,
             gradients,
             position,
             [] {},
             scaling})) {}

  /// One update of two batches; what `spoil` does lies between them. Of two
  /// processes each takes one.
  void update(double rate, const std::function<void(SmallRun&)>& spoil) {
    const auto rank = static_cast<uint64_t>(setup.communicator->rank());
    const auto size = static_cast<uint64_t>(setup.communicator->size());
    for (uint64_t i = rank; i < 2; i += size) {
      const auto number = static_cast<uint64_t>(position.update);
      if (i + size >= 2)
        gradients.start_with_backward();
      updates->add_batch(
          batches.batch(static_cast<int64_t>((2 * number + i) % 3)),
          {.seed = 1, .update = number + 1, .micro_batch = i});
      if (i == 0)
        spoil(*this);
    }
    ++position.update;
    updates->end({.clip_norm = config.optimizer.clip_norm, .learning_rate = rate});
  }

  TrainConfig config;
  RunSetup setup;
  FlatParameters parameters;
  Optimizer optimizer;
  ParameterAverage average;
  GradientSum gradients;
  Batcher batches;
  Position position;
  std::unique_ptr<Updates> updates;
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class DeviceUpdates : public testing::TinyTask {
 protected:
  DeviceUpdates() {
    config_.training.accumulate = 2;
    config_.training.ema_decay = 0.6;
    config_.model.dropout = 0.2;
    config_.optimizer.clip_norm = 0.05;
    config_.optimizer.weight_decay = 0.01;
  }

  void expect_same_sums(const UpdateSums& got, const UpdateSums& want) {
    EXPECT_NEAR(got.loss, want.loss, 1e-6 * want.loss);
    EXPECT_NEAR(got.nll, want.nll, 1e-6 * want.nll);
    EXPECT_NEAR(got.alignment, want.alignment, 1e-6 * want.alignment);
    EXPECT_EQ(got.aligned_tokens, want.aligned_tokens);
    EXPECT_EQ(got.target_tokens, want.target_tokens);
    EXPECT_EQ(got.source_tokens, want.source_tokens);
    EXPECT_EQ(got.sentences, want.sentences);
    EXPECT_EQ(got.broken, want.broken);
  }
};

TEST_F(DeviceUpdates, DecideAsTheHostDoes) {
  const auto nothing = [](SmallRun&) {};
  const auto not_finite = [](SmallRun& run) {
    run.parameters.gradients().narrow(0, 3, 1).fill_(std::numeric_limits<float>::quiet_NaN());
  };
  // The loss of the second batch, whose gradient would be none either.
  at::Tensor kept;
  const auto break_model = [&](SmallRun& run) {
    kept = run.parameters.values().clone();
    run.parameters.values().fill_(std::numeric_limits<float>::infinity());
  };
  const auto mend_model = [&](SmallRun& run) {
    if (kept.defined())
      run.parameters.values().copy_(kept);
    kept = at::Tensor();
  };
  // Adam's first steps are as long as the rate, whatever the gradient is: where one is but
  // rounding, they are to be short.
  config_.optimizer.epsilon = 1e-4;
  for (const auto kind : {OptimizerKind::kAdam, OptimizerKind::kNag}) {
    config_.optimizer.kind = kind;
    const std::string name = concat("run", static_cast<int>(kind));
    SmallRun host(config_, set_up_run(request(name + "h")), make_host_updates);
    SmallRun device(config_, set_up_run(request(name + "d")), make_device_updates);
    for (SmallRun* run : {&host, &device}) {
      at::NoGradGuard no_grad;
      for (const auto& [rate, spoil] :
           std::initializer_list<std::pair<double, std::function<void(SmallRun&)>>>{
               {0.01, not_finite},
               {0.02, nothing},
               {0.03, nothing},
               {0.05, break_model},
               {0.04, not_finite},
               {0.01, nothing}}) {
        at::AutoGradMode grad(true);
        const auto spoil_it = spoil;
        run->update(rate, [&](SmallRun& r) {
          at::NoGradGuard no_grad_inside;
          spoil_it(r);
        });
        at::NoGradGuard no_grad_after;
        mend_model(*run);
      }
      run->updates->read();
    }
    EXPECT_EQ(device.position.logged_skips, 3);
    EXPECT_EQ(device.position.logged_skips, host.position.logged_skips);
    EXPECT_EQ(device.position.skips_in_a_row, host.position.skips_in_a_row);
    EXPECT_NEAR(
        device.position.gradient_norm,
        host.position.gradient_norm,
        1e-6 * host.position.gradient_norm);
    EXPECT_EQ(device.optimizer.scalars().steps, 3);
    EXPECT_EQ(
        device.optimizer.scalars().previous_learning_rate,
        host.optimizer.scalars().previous_learning_rate);
    expect_same_sums(device.position.logged, host.position.logged);
    expect_same_sums(device.position.current, {});
    EXPECT_LE(difference(device.parameters.values(), host.parameters.values()), 1e-6);
    EXPECT_LE(difference(device.average.values(), host.average.values()), 1e-6);
    for (const auto& [key, tensor] : host.optimizer.tensors())
      EXPECT_LE(difference(device.optimizer.tensors().at(key), tensor), 1e-6);
    device.updates->begin_record();
    device.update(0.01, nothing);
    host.updates->begin_record();
    host.update(0.01, nothing);
    device.updates->read();
    EXPECT_EQ(device.position.logged_skips, 0);
    expect_same_sums(device.position.logged, host.position.logged);
  }
}

TEST_F(DeviceUpdates, GuideAlignmentsAsTheHostDoes) {
  config_.training.guided_alignment = 0.5;
  config_.optimizer.kind = OptimizerKind::kNag;
  SmallRun host(config_, set_up_run(request("host")), make_host_updates);
  SmallRun device(config_, set_up_run(request("device")), make_device_updates);
  for (SmallRun* run : {&host, &device}) {
    for (int i = 0; i < 3; ++i)
      run->update(0.02, [](SmallRun&) {});
    run->updates->read();
  }
  EXPECT_GT(host.position.logged.aligned_tokens, host.position.logged.target_tokens / 2);
  expect_same_sums(device.position.logged, host.position.logged);
  EXPECT_LE(difference(device.parameters.values(), host.parameters.values()), 1e-6);
}

TEST_F(DeviceUpdates, AreThoseOfOneWhenTwoProcessesShareTheBatches) {
  const auto nothing = [](SmallRun&) {};
  SmallRun one(config_, set_up_run(request("one")), make_device_updates);
  for (int i = 0; i < 4; ++i)
    one.update(0.001, nothing);
  one.updates->read();
  const auto share = [&](const std::shared_ptr<Communicator>& processes) {
    SmallRun two(config_, set_up_run(request("two"), processes), make_device_updates);
    for (int i = 0; i < 4; ++i)
      two.update(0.001, nothing);
    two.updates->read();
    expect_same_sums(two.position.logged, one.position.logged);
    EXPECT_NEAR(
        two.position.gradient_norm, one.position.gradient_norm, 1e-6 * one.position.gradient_norm);
    EXPECT_EQ(two.optimizer.scalars().steps, 4);
    EXPECT_LE(difference(two.parameters.values(), one.parameters.values()), 2e-5);
  };
  for (const auto through : {testing::Through::kMemory, testing::Through::kTorch}) {
    testing::run_in_threads(2, share, through);
    std::filesystem::remove_all(path("two"));
  }
}

TEST_F(DeviceUpdates, TenSkippedInARowEndTheRunWhenTheyAreRead) {
  SmallRun run(config_, set_up_run(request("run")), make_device_updates);
  const auto spoil = [](SmallRun& spoiled) {
    at::NoGradGuard no_grad;
    spoiled.parameters.gradients().fill_(std::numeric_limits<float>::infinity());
  };
  for (int i = 0; i < 9; ++i)
    run.update(0.01, spoil);
  run.updates->read();
  EXPECT_EQ(run.position.skips_in_a_row, 9);
  run.update(0.01, spoil);
  run.update(0.01, [](SmallRun&) {});
  EXPECT_THROW(run.updates->read(), Error);
}

void overflow(SmallRun& run) {
  at::NoGradGuard no_grad;
  run.parameters.gradients().narrow(0, 3, 1).fill_(std::numeric_limits<float>::infinity());
}

// The model is float32, so that only the arithmetic of scaling is seen.
TEST_F(DeviceUpdates, ALossScaleChangesNoUpdateButThoseItSkips) {
  config_.training.guided_alignment = 0.5;
  const auto nothing = [](SmallRun&) {};
  const LossScaling scaling = {.on = true, .growth_interval = 3};
  SmallRun plain(config_, set_up_run(request("plain")), make_device_updates);
  SmallRun scaled(config_, set_up_run(request("scaled")), make_device_updates, scaling);
  set_log_level(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  for (const bool spoiled : {false, true, false, false, false}) {
    scaled.update(0.02, spoiled ? overflow : std::function(nothing));
    if (spoiled)
      ++plain.position.update;
    else
      plain.update(0.02, nothing);
    scaled.updates->read();
    plain.updates->read();
    EXPECT_EQ(scaled.position.skips_in_a_row, 0);
    EXPECT_NEAR(
        scaled.position.gradient_norm,
        plain.position.gradient_norm,
        1e-5 * plain.position.gradient_norm);
    if (spoiled) {
      EXPECT_EQ(scaled.position.loss_scale, kFirstLossScale / 2);
    }
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kWarning);
  EXPECT_THAT(
      said,
      ::testing::HasSubstr(
          "float16: the loss scale is 64 at update 2 (updates that it skipped: 1)"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("not finite")));
  EXPECT_EQ(scaled.position.loss_scale, kFirstLossScale);  // after three
  EXPECT_EQ(scaled.position.updates_at_loss_scale, 0);
  EXPECT_EQ(scaled.position.logged_skips, 1);
  EXPECT_EQ(scaled.optimizer.scalars().steps, 4);
  expect_same_sums(scaled.position.logged, plain.position.logged);
  EXPECT_LE(difference(scaled.parameters.values(), plain.parameters.values()), 2e-5);
  EXPECT_EQ(plain.position.loss_scale, 0);
  // A run goes on where it stood.
  Position saved, begin;
  saved.loss_scale = 512;
  saved.updates_at_loss_scale = 2;
  read_options(write_options(saved), "position", begin);
  SmallRun later(config_, set_up_run(request("later")), make_device_updates, scaling, begin);
  later.update(0.02, nothing);
  later.updates->read();
  EXPECT_EQ(later.position.loss_scale, 1024);
}

/// The loss of updates 61 to 90, in bits a token.
double loss_in(const TrainConfig& config, const RunSetup& setup) {
  SmallRun run(
      config, setup, make_device_updates, {.on = config.training.precision == Precision::kFloat16});
  for (int i = 0; i < 90; ++i) {
    if (i == 60) {
      run.updates->read();
      run.updates->begin_record();
    }
    run.update(0.01, [](SmallRun&) {});
  }
  run.updates->read();
  EXPECT_EQ(run.position.logged_skips, 0);
  const UpdateSums& sums = run.position.logged;
  return sums.loss / static_cast<double>(sums.target_tokens) / std::numbers::ln2;
}

// Convolutions have no float16 on the CPU; self-attention stands for them.
TEST_F(DeviceUpdates, LearnInSixteenBitsWhatTheyLearnInFloat32) {
  config_.model = testing::tiny_model(MixerKind::kSelfAttention);
  config_.model.dropout = 0.1;
  const double wanted = loss_in(config_, set_up_run(request("float32")));
  EXPECT_LT(wanted, 2);
  for (const auto precision : {Precision::kBFloat16, Precision::kFloat16}) {
    config_.training.precision = precision;
    const std::string name(enum_name(precision));
    const double got = loss_in(config_, set_up_run(request(name)));
    EXPECT_NEAR(got, wanted, 0.02) << name;
    EXPECT_NE(got, wanted) << name;
  }
}

TEST_F(DeviceUpdates, TrainingHasDivergedOnlyWhenTheLossScaleCannotFall) {
  SmallRun run(config_, set_up_run(request("run")), make_device_updates, {.on = true});
  const double halvings = std::log2(kFirstLossScale / kLeastLossScale);
  for (int i = 0; i < static_cast<int>(halvings) + 9; ++i)
    run.update(0.01, overflow);
  run.updates->read();
  EXPECT_EQ(run.position.loss_scale, kLeastLossScale);
  EXPECT_EQ(run.position.skips_in_a_row, 9);
  run.update(0.01, overflow);
  EXPECT_THROW(run.updates->read(), Error);
}

// A loss does not depend on the scale.
TEST_F(DeviceUpdates, ABrokenLossLeavesTheLossScale) {
  SmallRun run(config_, set_up_run(request("run")), make_device_updates, {.on = true});
  run.update(0.01, [](SmallRun& broken) {
    at::NoGradGuard no_grad;
    broken.parameters.values().fill_(std::numeric_limits<float>::infinity());
  });
  run.updates->read();
  EXPECT_EQ(run.position.loss_scale, kFirstLossScale);
  EXPECT_EQ(run.position.skips_in_a_row, 1);
}

TEST_F(DeviceUpdates, SplitBatchesForWhichMemoryIsTooSmall) {
  config_.training.guided_alignment = 0.5;
  // Batches that need more memory than the parameters do.
  write_pairs("train", 3000, 1, /*reversed=*/true);
  config_.batching.max_tokens = 4000;
  const auto nothing = [](SmallRun&) {};
  SmallRun whole(config_, set_up_run(request("whole")), make_device_updates);
  SmallRun split(config_, set_up_run(request("split")), make_device_updates);
  SmallRun none(config_, set_up_run(request("none")), make_device_updates);
  testing::SmallMemory memory;
  whole.update(0.01, nothing);
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kWarning);
  memory.limit = memory.largest / 3;  // halves of halves fit
  split.update(0.01, nothing);
  split.update(0.01, nothing);
  const int refused = memory.refused;
  split.update(0.01, nothing);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_GE(refused, 2);
  EXPECT_EQ(memory.refused, refused);  // what is known is not tried again
  EXPECT_EQ(said.find("is too small for"), said.rfind("is too small for"));
  EXPECT_THAT(said, ::testing::HasSubstr("such batches are split"));
  memory.limit = 64;
  EXPECT_THAT(
      testing::error_of([&] { none.update(0.01, nothing); }),
      ::testing::HasSubstr("no room; lower batching.max_tokens (4000)"));
  memory.limit = std::numeric_limits<size_t>::max();
  whole.update(0.01, nothing);
  whole.update(0.01, nothing);
  whole.updates->read();
  split.updates->read();
  expect_same_sums(split.position.logged, whole.position.logged);
  EXPECT_LE(difference(split.parameters.values(), whole.parameters.values()), 2e-5);
}

// Libraries that LibTorch calls get no memory while LibTorch keeps it all.
TEST_F(DeviceUpdates, SplitBatchesForWhichALibraryGetsNoMemory) {
  write_pairs("train", 3000, 1, /*reversed=*/true);
  config_.batching.max_tokens = 4000;
  const auto nothing = [](SmallRun&) {};
  SmallRun whole(config_, set_up_run(request("whole")), make_device_updates);
  SmallRun split(config_, set_up_run(request("split")), make_device_updates);
  testing::SmallMemory memory;
  memory.fault = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`";
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kWarning);
  whole.update(0.01, nothing);
  const size_t largest = memory.largest;
  memory.limit = largest / 3;
  memory.refusals = 1;  // what is given back is enough
  split.update(0.01, nothing);
  EXPECT_EQ(memory.refused, 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  memory.refusals = std::numeric_limits<int>::max();
  split.update(0.01, nothing);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("such batches are split"));
  memory.limit = 64;
  EXPECT_THAT(
      testing::error_of([&] { split.update(0.01, nothing); }),
      ::testing::HasSubstr("`; lower batching.max_tokens (4000)"));
  memory.limit = std::numeric_limits<size_t>::max();
  whole.update(0.01, nothing);
  whole.updates->read();
  split.updates->read();
  expect_same_sums(split.position.logged, whole.position.logged);
}

// A whole run on a device that has no values: what reads one fails. It logs,
// validates, translates, saves and goes on.
TEST_F(DeviceUpdates, RunsReadNothingButWhereTheyMust) {
  config_.training.max_updates = 6;
  config_.training.validate_every = 3;
  config_.training.log_every = 2;
  config_.training.validate_bleu = true;
  for (const auto& [kind, precision] :
       {std::pair{OptimizerKind::kAdam, Precision::kFloat32},
        {OptimizerKind::kNag, Precision::kFloat32},
        {OptimizerKind::kAdam, Precision::kBFloat16},
        {OptimizerKind::kNag, Precision::kFloat16}}) {
    config_.optimizer.kind = kind;
    config_.training.precision = precision;
    const std::string name = concat(enum_name(kind), "-", enum_name(precision));
    TrainRequest on_device = request(name);
    on_device.device = at::kMeta;
    EXPECT_THAT(
        testing::calls_of_mixed_devices([&] {
          train(on_device, [](const RunSetup& setup, const Position&) {
            EXPECT_TRUE(setup.task->model()->device().is_meta());
          });
          on_device.resume = true;
          on_device.config.training.max_updates = 8;
          train(on_device, [](const RunSetup&, const Position&) {});
        }),
        IsEmpty());
    EXPECT_EQ(records(name, "train").size(), 4u);
    EXPECT_EQ(records(name, "validation").size(), 3u);
  }
}

}  // namespace
}  // namespace seqconv::internal
