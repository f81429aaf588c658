#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/files.h"
#include "golden_checks.h"
#include "train/update.h"

// Losses, gradients and updates of imported checkpoints against those that the
// reference code recorded.
namespace seqconv::internal {
namespace {

using testing::expect_near;
using testing::GoldenModel;
using testing::kGradients;
using testing::kLoss;
using testing::kNorm;

class GoldenModelTraining : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  GoldenModelTraining() : golden_(GetParam()) {}

  /// The bound that the folder's README gives for parameters after updates.
  double update_bound() const {
    const std::string text = read_file(GetParam() / "README.md");
    static constexpr std::string_view kWords = "parameters after 3 updates ";
    const size_t at = text.rfind(kWords);
    SEQCONV_CHECK(at != std::string::npos, "the README must say '", kWords, "'");
    return std::stod(text.substr(at + kWords.size()));
  }

  GoldenModel golden_;
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModelTraining);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenModelTraining,
    ::testing::ValuesIn(testing::golden_model_folders()),
    testing::golden_model_name);

class GoldenAdaptiveTraining : public GoldenModelTraining {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAdaptiveTraining);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenAdaptiveTraining,
    ::testing::ValuesIn(testing::golden_adaptive_folders()),
    testing::golden_model_name);

/// Names of our parameters and gradients as tensors, for one loss.
struct Step {
  double loss = 0;
  double norm = 0;
  std::map<std::string, at::Tensor> gradients;
};

LossOptions loss_options(const std::string& name) {
  if (name == "all")
    return {{.smoothing = 0.1, .form = ops::SmoothingForm::kAll}};
  if (name == "others")
    return {{.smoothing = 0.1, .form = ops::SmoothingForm::kOthers}};
  return {};  // cross-entropy, also of the adaptive softmax
}

class TrainingSteps {
 public:
  TrainingSteps(const GoldenModel& golden, std::shared_ptr<SequenceModel> model)
      : model_(std::move(model)), flat_(*model_) {
    const Json& training = golden.outputs().at("training");
    batch_ = golden.batch(training.at("rows").get<std::vector<int64_t>>());
    EXPECT_EQ(batch_.target_tokens, training.at("ntokens").get<int64_t>());
    const Json& optimizer = training.at("optimizer");
    options_ = {
        .kind = OptimizerKind::kAdam,
        .beta1 = optimizer.at("betas").at(0),
        .beta2 = optimizer.at("betas").at(1),
        .epsilon = optimizer.at("eps"),
        .weight_decay = optimizer.at("weight_decay"),
        .clip_norm = optimizer.at("clip_norm")};
    rate_ = optimizer.at("lr");
    optimizer_ = std::make_unique<Optimizer>(options_, flat_.values());
  }

  /// Loss and gradients per token; the parameters stay as they are.
  Step measure(const std::string& loss) {
    UpdateSums sums;
    accumulate_batch(*model_, batch_, loss_options(loss), {}, sums);
    Step step{.loss = sums.loss};
    const auto tokens = static_cast<double>(batch_.target_tokens);
    step.norm = gradient_norm(flat_.gradients()) / tokens;
    for (const auto& [name, value] : items())
      step.gradients[name] = value.grad().clone() / tokens;
    flat_.gradients().zero_();
    return step;
  }

  StepResult update(const std::string& loss, UpdateSums& sums) {
    accumulate_batch(*model_, batch_, loss_options(loss), {}, sums);
    return apply_update(
        flat_, *optimizer_, {.clip_norm = options_.clip_norm, .learning_rate = rate_}, sums);
  }

  std::map<std::string, at::Tensor> items() const {
    std::map<std::string, at::Tensor> result;
    for (const auto& item : model_->named_parameters())
      result[item.key()] = item.value();
    return result;
  }

 private:
  std::shared_ptr<SequenceModel> model_;
  FlatParameters flat_;
  Batch batch_;
  OptimizerOptions options_;
  double rate_ = 0;
  std::unique_ptr<Optimizer> optimizer_;
};

std::shared_ptr<SequenceModel> make_model(const GoldenModel& golden) {
  if (golden.translates())
    return golden.translation_model().ptr();
  return golden.language_model().ptr();
}

/// The loss whose gradients were recorded by name.
std::string recorded_loss(const Json& training) {
  for (const auto& [name, entry] : training.items())
    if (entry.is_object() && entry.contains("gradient_norm_of"))
      return name;
  return "";
}

TEST_P(GoldenModelTraining, LossesAndGradients) {
  const Json& training = golden_.outputs().at("training");
  TrainingSteps steps(golden_, make_model(golden_));
  int losses = 0;
  for (const auto& [name, wanted] : training.items()) {
    if (!wanted.is_object() || !wanted.contains("loss_nats_sum"))
      continue;
    SCOPED_TRACE(name);
    const Step step = steps.measure(name);
    const double loss = wanted.at("loss_nats_sum");
    const double norm = wanted.at("gradient_norm");
    EXPECT_NEAR(step.loss, loss, kLoss * loss);
    EXPECT_NEAR(step.norm, norm, kNorm * norm);
    ++losses;
    if (!wanted.contains("gradient_norm_of"))
      continue;
    for (const auto& [parameter, value] : wanted.at("gradient_norm_of").items())
      if (!parameter.ends_with("k_proj.bias")) {  // rounding noise alone
        const double found =
            golden_.theirs(parameter, step.gradients).to(at::kDouble).norm().item<double>();
        const double recorded = value;
        EXPECT_NEAR(found, recorded, kNorm * recorded + 1e-9) << parameter;
      }
  }
  EXPECT_GE(losses, 2);
}

TEST_P(GoldenModelTraining, NamedGradients) {
  const Json& training = golden_.outputs().at("training");
  TrainingSteps steps(golden_, make_model(golden_));
  const Step step = steps.measure(recorded_loss(training));
  const auto names = golden_.recorded_names("grad.");
  EXPECT_GE(names.size(), 1u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const at::Tensor& wanted = golden_.recorded(name);
    expect_near(
        golden_.theirs(name.substr(5), step.gradients),
        wanted,
        kGradients * wanted.abs().max().item<double>());
  }
}

TEST_P(GoldenModelTraining, ThreeUpdates) {
  const Json& training = golden_.outputs().at("training");
  const std::string loss = training.value("loss_form", recorded_loss(training));
  TrainingSteps steps(golden_, make_model(golden_));
  for (const Json& wanted : training.at("steps")) {
    UpdateSums sums;
    const StepResult result = steps.update(loss, sums);
    const double nats = wanted.at("loss_nats_sum");
    const double norm = wanted.at("gradient_norm");
    EXPECT_NEAR(sums.loss, nats, kLoss * nats);
    EXPECT_NEAR(result.gradient_norm, norm, kNorm * norm);
  }
  const double after = training.at("loss_nats_sum_after");
  EXPECT_NEAR(steps.measure(loss).loss, after, kLoss * after);
  const auto names = golden_.recorded_names("after3.");
  EXPECT_GE(names.size(), 1u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    expect_near(
        golden_.theirs(name.substr(7), steps.items()), golden_.recorded(name), update_bound());
  }
}

TEST_P(GoldenAdaptiveTraining, FairseqsOwnLoss) {
  const Json& outputs = golden_.outputs();
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < golden_.rows(); ++row)
    rows.push_back(row);
  DropoutPlan plan;
  const auto found =
      golden_.language_model(/*fairseq_compatible=*/true)->loss(golden_.batch(rows), {}, plan);
  const double wanted = outputs.at("adaptive_criterion_loss_nats_sum");
  EXPECT_NEAR(found.loss.item<double>(), wanted, kLoss * wanted);
}

}  // namespace
}  // namespace seqconv::internal
