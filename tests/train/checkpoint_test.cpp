#include "train/checkpoint.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include "base/files.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

/// A little model with an optimiser that has made two steps.
struct LittleRun {
  explicit LittleRun(int64_t width = 5, OptimizerKind kind = OptimizerKind::kAdam)
      : module(width, 3), parameters(*module) {
    options.kind = kind;
    optimizer.emplace(options, parameters.values());
    parameters.gradients().copy_(at::rand(parameters.gradients().sizes()));
    optimizer->step(parameters.gradients(), 1, 0.1);
    optimizer->step(parameters.gradients(), 1, 0.2);
    position.update = 2;
    position.optimizer = optimizer->scalars();
  }
  RunTensors tensors() { return {parameters, *optimizer, average}; }
  /// Where the bias begins in the flat buffers.
  int64_t bias() const { return parameters.slots().back().offset; }

  torch::nn::Linear module;
  FlatParameters parameters;
  OptimizerOptions options;
  std::optional<Optimizer> optimizer;
  at::Tensor average;  // undefined: none is kept
  Position position;
};

class TrainingState : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "state"; }
  void damage(size_t byte) {
    std::string content = read_file(file());
    content[byte] = static_cast<char>(content[byte] ^ 0x10);
    write_file_atomically(file(), content);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(TrainingState, EverythingComesBack) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kNag}) {
    LittleRun run(5, kind);
    run.position.micro_batch = 1;  // so that the gradient is kept
    run.position.current.loss = 0.1 + 0.2;
    run.position.best = 1.0 / 3;
    run.position.has_best = true;
    save_state(file(), run.position, {{"note", "x"}}, run.tensors());
    LittleRun other(5, kind);
    const SavedState saved = read_state(file());
    EXPECT_EQ(write_options(saved.position).dump(), write_options(run.position).dump());
    EXPECT_EQ(saved.position.current.loss, 0.1 + 0.2);  // to the bit
    EXPECT_EQ(saved.position.best, 1.0 / 3);
    EXPECT_EQ(saved.settings, (Json{{"note", "x"}}));
    load_state_tensors(file(), saved.position, other.tensors());
    EXPECT_TRUE(other.parameters.values().equal(run.parameters.values()));
    EXPECT_TRUE(other.parameters.gradients().equal(run.parameters.gradients()));
    for (const auto& [name, tensor] : run.optimizer->tensors())
      EXPECT_TRUE(other.optimizer->tensors().at(name).equal(tensor)) << name;
    EXPECT_EQ(other.optimizer->scalars().steps, 2);
    EXPECT_EQ(other.optimizer->scalars().previous_learning_rate, 0.2);
  }
}

TEST_F(TrainingState, AMovingAverageComesBackAndIsMissed) {
  LittleRun run;
  LittleRun other;
  run.average = at::rand(run.parameters.values().sizes());
  other.average = at::zeros_like(run.average);
  save_state(file(), run.position, {}, run.tensors());
  load_state_tensors(file(), run.position, other.tensors());
  EXPECT_TRUE(other.average.equal(run.average));
  run.average[run.bias()].fill_(NAN);
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_THAT(
      testing::error_of([&] { load_state_tensors(file(), run.position, other.tensors()); }),
      HasSubstr("average of parameter 'bias' must hold finite numbers"));
  EXPECT_EQ(find_unsound(run.tensors())->not_finite, 1u);
  run.average = at::Tensor();
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_THAT(
      testing::error_of([&] { load_state_tensors(file(), run.position, other.tensors()); }),
      HasSubstr("no tensor 'average'"));
}

TEST_F(TrainingState, ParametersThatAreNotFiniteAreRefused) {
  LittleRun run;
  {
    at::NoGradGuard no_grad;
    run.module->bias[1] = NAN;
  }
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_EQ(
      testing::error_of([&] { load_state_tensors(file(), run.position, run.tensors()); }),
      file().string() +
          ": parameter 'bias' must hold finite numbers, but 1 of them is NaN or infinite: the "
          "training diverged, or the file is damaged");
}

TEST_F(TrainingState, NumbersOfTheOptimizerThatStopItAreRefused) {
  const auto error = [&](LittleRun& run) {
    save_state(file(), run.position, {}, run.tensors());
    return testing::error_of([&] { load_state_tensors(file(), run.position, run.tensors()); });
  };
  for (const auto& [kind, name, value] : std::vector<std::tuple<OptimizerKind, std::string, float>>{
           {OptimizerKind::kAdam, "first_moment", INFINITY},
           {OptimizerKind::kAdam, "second_moment", INFINITY},
           {OptimizerKind::kAdam, "second_moment", NAN},
           {OptimizerKind::kNag, "momentum", -INFINITY}}) {
    LittleRun run(5, kind);
    EXPECT_FALSE(find_unsound(run.tensors()));
    run.optimizer->tensors().at(name)[run.bias()].fill_(value);
    EXPECT_EQ(
        error(run),
        concat(
            file().string(),
            ": optimizer.",
            name,
            " of parameter 'bias' must hold finite numbers, but 1 of them is NaN or infinite: the "
            "training diverged, or the file is damaged"));
    EXPECT_EQ(find_unsound(run.tensors())->not_finite, 1u);
  }
  LittleRun run;
  run.optimizer->tensors().at("first_moment").fill_(-1);
  run.optimizer->tensors().at("second_moment")[0].fill_(-0.0f);
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_NO_THROW(load_state_tensors(file(), run.position, run.tensors()));
  run.optimizer->tensors().at("second_moment").narrow(0, 1, 2).fill_(-1);
  EXPECT_EQ(
      error(run),
      file().string() +
          ": optimizer.second_moment of parameter 'weight' must hold squares, but 2 of them are "
          "below 0: the file is damaged");
}

TEST_F(TrainingState, APartialGradientThatIsNotFiniteComesBack) {
  // An uninterrupted run would skip the update at its end.
  LittleRun run;
  run.position.micro_batch = 1;
  run.parameters.gradients()[0].fill_(INFINITY);
  save_state(file(), run.position, {}, run.tensors());
  LittleRun other;
  load_state_tensors(file(), run.position, other.tensors());
  EXPECT_TRUE(other.parameters.gradients().equal(run.parameters.gradients()));
}

TEST_F(TrainingState, CountsBelowZeroAreRefused) {
  LittleRun run;
  run.position.batch = -1;
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_EQ(
      testing::error_of([&] { read_state(file()); }),
      file().string() + ": the training state is damaged: its batch must be >= 0, but got -1");
  run.position.batch = 0;
  run.position.optimizer.steps = -2;
  save_state(file(), run.position, {}, run.tensors());
  EXPECT_THAT(
      testing::error_of([&] { read_state(file()); }),
      HasSubstr("its optimizer.steps must be >= 0, but got -2"));
}

TEST_F(TrainingState, TruncationAnywhereIsAClearError) {
  LittleRun run;
  save_state(file(), run.position, {}, run.tensors());
  const std::string whole = read_file(file());
  for (const size_t size : {size_t{0}, size_t{7}, size_t{9}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomically(file(), whole.substr(0, size));
    EXPECT_THAT(testing::error_of([&] { read_state(file()); }), HasSubstr(file().string()))
        << size << " bytes";
  }
}

TEST_F(TrainingState, AFlippedBitIsNoticed) {
  LittleRun run;
  save_state(file(), run.position, {}, run.tensors());
  const size_t size = read_file(file()).size();
  const size_t position = read_file(file()).find("update") + 10;
  for (const size_t byte : {size - 3, position}) {
    damage(byte);
    EXPECT_THAT(testing::error_of([&] { read_state(file()); }), HasSubstr(file().string()))
        << "byte " << byte;
    damage(byte);
    EXPECT_NO_THROW(read_state(file()));
  }
  damage(size - 3);
  EXPECT_THAT(
      testing::error_of([&] { read_state(file()); }),
      HasSubstr("the training state is damaged, its checksum does not fit"));
}

TEST_F(TrainingState, AnotherModelsStateIsRefused) {
  LittleRun run;
  save_state(file(), run.position, {}, run.tensors());
  LittleRun other(6);
  EXPECT_THAT(
      testing::error_of([&] { load_state_tensors(file(), run.position, other.tensors()); }),
      HasSubstr("belongs to a model with other parameters"));
}

TEST_F(TrainingState, AModelFileIsNoState) {
  write_safetensors(file(), {}, {{"format", "pt"}});
  EXPECT_THAT(
      testing::error_of([&] { read_state(file()); }), HasSubstr("reads training states of format"));
  write_safetensors(file(), {}, {});
  EXPECT_THAT(
      testing::error_of([&] { read_state(file()); }),
      HasSubstr("not a training state, its metadata lack 'format'"));
}

TEST_F(TrainingState, SettingsOfAnotherKindAreNamed) {
  LittleRun run;
  const auto message = [&](const Json& settings) {
    save_state(file(), run.position, settings, run.tensors());
    return testing::error_of([&] { read_state(file()); });
  };
  for (const auto& [settings, wanted] :
       {std::pair<Json, const char*>{3, "an object was wanted, but got 3"},
        {Json::array(), "an object was wanted, but got []"},
        {{{"config", "x"}}, "config cannot be \"x\""},
        {{{"config", {{"text", 1}}}}, "text cannot be 1"},
        {{{"text", Json()}}, "text cannot be null"},
        {{{"inputs", Json::array()}}, "inputs cannot be []"},
        {{{"threads", "many"}}, "threads cannot be \"many\""},
        {{{"processes", 1.5}}, "processes cannot be 1.5"}})
    EXPECT_EQ(
        message(settings),
        concat(file().string(), ": the settings of the run are malformed: ", wanted));
}

TEST_F(TrainingState, OtherVersionsAreRefusedByName) {
  const std::string known = "seqconv-training-state-";
  for (const std::string version : {"2", "0", "-1", "1.0", "01", "abc", ""}) {
    write_safetensors(file(), {}, {{"format", known + version}});
    EXPECT_THAT(
        testing::error_of([&] { read_state(file()); }),
        HasSubstr(concat(
            file().string(),
            ": this program reads training states of format '",
            known,
            "1', but got '",
            known,
            version,
            "': another version of seqconv wrote it; resume with that one, or start another run "
            "from the model with --init-from")));
  }
}

TEST_F(TrainingState, AFullDiskLeavesTheOldState) {
  LittleRun run;
  save_state(file(), run.position, {}, run.tensors());
  run.position.update = 3;
  {
    const testing::FileSizeLimit limit(200);
    EXPECT_THAT(
        testing::error_of([&] { save_state(file(), run.position, {}, run.tensors()); }),
        HasSubstr(concat("cannot write '", file().string())));
  }
  EXPECT_EQ(read_state(file()).position.update, 2);
  EXPECT_EQ(folder_.entries(), 1);  // nothing left lying about
}

}  // namespace
}  // namespace seqconv::internal
