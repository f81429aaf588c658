#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "base/files.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "text/corpus/batcher.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

/// Parameters by name.
using Values = std::map<std::string, std::vector<float>>;

Values values_of(const SequenceModel& model) {
  Values values;
  for (const auto& parameter : model.named_parameters()) {
    const float* first = parameter.value().const_data_ptr<float>();
    values[parameter.key()].assign(first, first + parameter.value().numel());
  }
  return values;
}

Values values_of(const std::filesystem::path& file) {
  const SafetensorsReader reader(file);
  Values values;
  for (const auto& [name, view] : reader.tensors()) {
    auto& own = values[name];
    own.resize(static_cast<size_t>(view.count()));
    std::memcpy(own.data(), view.data.data(), view.data.size());
  }
  return values;
}

/// The mean of their definition: the last weighs 1, each before it `decay`
/// times the next one.
Values moving_mean(const std::vector<Values>& history, double decay) {
  Values mean = history.front();
  for (auto& [name, values] : mean)
    for (size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      double weights = 0;
      for (size_t n = 0; n < history.size(); ++n) {
        const double weight = std::pow(decay, static_cast<double>(history.size() - 1 - n));
        sum += weight * history[n].at(name)[i];
        weights += weight;
      }
      values[i] = static_cast<float>(sum / weights);
    }
  return mean;
}

void expect_near(const Values& actual, const Values& wanted) {
  ASSERT_FALSE(actual.empty());
  for (const auto& [name, values] : actual) {
    const auto& own = wanted.at(name);
    ASSERT_EQ(values.size(), own.size());
    for (size_t i = 0; i < own.size(); ++i)
      ASSERT_NEAR(values[i], own[i], 1e-6) << name;
  }
}

/// The update under way will be skipped.
void spoil_gradient(const RunSetup& setup) {
  setup.task->model()->parameters()[0].mutable_grad().fill_(INFINITY);
}

class MovingAverage : public testing::TinyTask {
 protected:
  MovingAverage() {
    config_.training.accumulate = 2;
    config_.training.max_updates = 8;
    config_.training.validate_every = 4;
    config_.training.save_every = 1;
    config_.training.keep_last = 100;
    config_.training.ema_decay = 0.7;
  }

  Values checkpoint(const std::string& output, int64_t update) const {
    return values_of(RunFolder{path(output)}.checkpoint(update));
  }
};

TEST_F(MovingAverage, IsStoredAfterEveryUpdateByItsDefinition) {
  std::vector<Values> history;
  train(request("run"), [&](const RunSetup& setup, const Position& position) {
    if (position.micro_batch == 0)
      history.push_back(values_of(*setup.task->model()));
  });
  ASSERT_EQ(history.size(), 8u);
  for (int64_t update = 1; update <= 8; ++update)
    expect_near(
        checkpoint("run", update), moving_mean({history.begin(), history.begin() + update}, 0.7));
  EXPECT_EQ(
      SafetensorsReader(RunFolder{path("run")}.checkpoint(8)).metadata().at("ema_decay"), "0.7");
}

TEST_F(MovingAverage, IsWhatIsValidated) {
  std::optional<Batcher> batches;
  train(request("run"), [&](const RunSetup& setup, const Position&) {
    if (!batches)
      batches.emplace(setup.data.valid->samples, config_.batching, 1);
  });
  SingleProcess alone;
  ops::CrossEntropyOptions loss;
  loss.smoothing = config_.training.label_smoothing;
  for (const Json& record : records("run", "validation")) {
    const LoadedModel model = load_model(RunFolder{path("run")}.checkpoint(record["update"]));
    EXPECT_EQ(
        validation_loss(*model.model, *batches, loss, alone, ValidationStop()).loss_base2,
        record["loss_base2"].get<double>());
  }
}

TEST_F(MovingAverage, DoesNotDisturbTheTraining) {
  train_model(request("with"));
  config_.training.ema_decay = 0;
  train_model(request("without"));
  const auto state = [&](const std::string& output) {
    auto tensors = testing::tensors_of(path(output) / "training" / "state.safetensors");
    tensors.erase("average");
    return tensors;
  };
  EXPECT_TRUE(state("with") == state("without"));
  EXPECT_FALSE(
      read_file(path("with") / "model.safetensors") ==
      read_file(path("without") / "model.safetensors"));
}

TEST_F(MovingAverage, LeavesSkippedUpdatesOut) {
  std::vector<Values> history;
  train(request("run"), [&](const RunSetup& setup, const Position& position) {
    if (position.micro_batch == 0) {
      if (position.update != 3)
        history.push_back(values_of(*setup.task->model()));
    } else if (position.update == 2) {
      spoil_gradient(setup);
    }
  });
  ASSERT_EQ(history.size(), 7u);
  expect_near(checkpoint("run", 8), moving_mean(history, 0.7));
}

TEST_F(MovingAverage, BeforeTheFirstUpdateIsTheParametersThemselves) {
  config_.training.max_updates = 1;
  train(request("run"), [&](const RunSetup& setup, const Position& position) {
    if (position.micro_batch > 0)
      spoil_gradient(setup);
  });
  const auto tensors = testing::tensors_of(path("run") / "training" / "state.safetensors");
  EXPECT_TRUE(tensors.at("average") == tensors.at("parameters"));
}

}  // namespace
}  // namespace seqconv::internal
