#include "train/dry_run.h"

#include <gmock/gmock.h>

namespace seqconv::internal {
namespace {

/// One layer a side, width 8, feed-forward 16, batches of 10 tokens.
TrainConfig small_run() {
  TrainConfig config;
  config.model.dim = 8;
  config.model.ffn_dim = 16;
  for (StackOptions* stack : {&config.model.encoder, &config.model.decoder}) {
    stack->layers = 1;
    stack->kernel_sizes = {3};
  }
  config.batching.max_tokens = 10;
  return config;
}

RunSize size_of(int64_t processes = 1, bool on_cpu = true) {
  return {.parameters = 1000, .target_vocabulary = 80, .processes = processes, .on_cpu = on_cpu};
}

TEST(MemoryEstimate, CountsWhatIsAsLargeAsTheParameters) {
  TrainConfig config = small_run();
  const auto bytes = [&](const RunSize& size) { return estimate_memory(config, size).parameters; };
  EXPECT_EQ(bytes(size_of()), 16'000);  // value, gradient, two moments
  config.training.precision = Precision::kBFloat16;
  EXPECT_EQ(bytes(size_of()), 18'000);
  config.training.precision = Precision::kFloat16;
  EXPECT_EQ(bytes(size_of(1, /*on_cpu=*/false)), 18'000);
  config.training.precision = Precision::kFloat32;
  config.training.ema_decay = 0.999;
  EXPECT_EQ(bytes(size_of()), 20'000);
  config.optimizer.kind = OptimizerKind::kNag;
  EXPECT_EQ(bytes(size_of()), 16'000);  // value, gradient, momentum, average
}

TEST(MemoryEstimate, IsThatOfOneOfTheProcesses) {
  TrainConfig config = small_run();
  config.training.ema_decay = 0.999;
  const auto bytes = [&](const RunSize& size) { return estimate_memory(config, size).parameters; };
  EXPECT_EQ(bytes(size_of(4, /*on_cpu=*/false)), 20'000);
  EXPECT_EQ(bytes(size_of(4)), 24'000);  // MPI's copies of gradients
  config.training.shard_optimizer = true;
  EXPECT_EQ(bytes(size_of()), 20'000);
  EXPECT_EQ(bytes(size_of(4, /*on_cpu=*/false)), 11'000);  // 8 + 12 / 4 each
  EXPECT_EQ(bytes(size_of(2)), 18'000);                    // 8 + 4 + 12 / 2
}

TEST(MemoryEstimate, CountsActivationsInTheirType) {
  TrainConfig config = small_run();
  const auto bytes = [&](bool on_cpu) {
    return estimate_memory(config, size_of(1, on_cpu)).activations;
  };
  // Encoder (6 + 4) x 8 + 2 x 16 = 112, decoder (12 + 4) x 8 + 2 x 16 = 160,
  // output 8 + 8 + 80 / 8 = 26: 298 numbers a token.
  EXPECT_EQ(bytes(/*on_cpu=*/true), 11'920);
  EXPECT_EQ(bytes(/*on_cpu=*/false), 11'920);
  config.training.precision = Precision::kBFloat16;
  EXPECT_EQ(bytes(/*on_cpu=*/false), 5'960);
  // Queries, keys, values and what comes of them in float32: 4 x 8 x 4 a token.
  EXPECT_EQ(bytes(/*on_cpu=*/true), 5'960 + 1'280);
  config.model.attention_dropout = 0.1;
  EXPECT_EQ(bytes(/*on_cpu=*/true), 5'960);
}

}  // namespace
}  // namespace seqconv::internal
