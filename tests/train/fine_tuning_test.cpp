#include <gmock/gmock.h>

#include "seqconv/base/files.h"
#include "seqconv/base/options.h"
#include "support/errors.h"
#include "tiny_task.h"

namespace seqconv {
namespace {

using ::testing::HasSubstr;

class FineTuningRun : public testing::TinyTask {};

TEST_F(FineTuningRun, BeginsWithTheOtherModel) {
  train_model(request("base"));
  write_pairs("train", 80, 5, /*reversed=*/false);
  config_.schedule.learning_rate = 1e-30;  // so that nothing moves
  config_.schedule.warmup_start = 1e-30;
  config_.text.min_count = 3;  // not used: the text comes with the model
  config_.model.dropout = 0.3;
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  train_model(tune);
  const LoadedModel base = load_model(path("base"));
  const LoadedModel tuned = load_model(path("tuned"));
  const auto values = base.model->named_parameters();
  // Only what was exactly zero can move by 1e-30.
  for (const auto& item : tuned.model->named_parameters())
    EXPECT_TRUE(item.value().allclose(values[item.key()], 0, 1e-25))
        << item.key() << " moved by "
        << (item.value() - values[item.key()]).abs().max().item<double>();
  EXPECT_EQ(
      Json::parse(read_file(path("base") / "config.json"))["text"],
      Json::parse(read_file(path("tuned") / "config.json"))["text"]);
  tune.init_from = RunFolder{path("base")}.checkpoint(12);
  tune.output = path("from-checkpoint");
  EXPECT_NO_THROW(train_model(tune));
  config_.model.dim = 64;
  TrainRequest other = request("other");
  other.init_from = path("base");
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(other); }),
      HasSubstr("model.dim is 64 in the configuration and 32 in that model"));
}

TEST_F(FineTuningRun, Resumes) {
  train_model(request("base"));
  config_.text.min_count = 2;  // not used, but it must not forbid resuming
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  tune.config.training.max_updates = 3;
  train_model(tune);
  tune.init_from.clear();
  tune.resume = true;
  tune.config.training.max_updates = 5;
  EXPECT_NO_THROW(train_model(tune));
  EXPECT_EQ(records("tuned", "train").size(), 5u);
}

}  // namespace
}  // namespace seqconv
