#include <gmock/gmock.h>

#include <cmath>
#include <deque>
#include <functional>

#include "base/elements.h"
#include "comparison.h"
#include "model/quantize.h"
#include "model/stored_parameters.h"
#include "random_models.h"
#include "runtime/runtime_backends.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "variants.h"

// Models of int8, and products in other types than float32.
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::error_of;
using ::testing::HasSubstr;
using testing::Variant;

using Sentences = std::vector<std::vector<int32_t>>;
using Change = std::function<void(std::map<std::string, TensorView>&)>;

/// A model of any task as three files: float32, int8, and float32 of the
/// numbers that int8 stands for.
class ThreeModels {
 public:
  explicit ThreeModels(const Variant& variant, Task task) : task_(task) {
    const fs::path file = folder_.path() / "float.safetensors";
    floats = task == Task::kTranslation
        ? testing::random_translation_model(variant.options, file, 3)
        : testing::random_language_model(variant.options, file, 3);
    whole = as(folder_.path() / "int8.safetensors");
    quantize_parameters(SafetensorsReader(file), parameters(), whole.parameters);
    meant = as(folder_.path() / "meant.safetensors");
    write_meant(SafetensorsReader(whole.parameters));
  }

  /// Log-probabilities of random text, piece by piece where it is `apart`.
  std::vector<double> score(const ModelToRun& model, ComputeType type, bool apart = false) const {
    const RuntimeBackends opener(type);
    std::vector<double> scores;
    if (task_ == Task::kTranslation) {
      const auto backend = opener.translation({model});
      const Sentences sources = text(4), targets = text(7);
      if (!apart)
        return backend->score(sources, targets);
      for (size_t i = 0; i < sources.size(); ++i)
        scores.push_back(backend->score({sources[i]}, {targets[i]})[0]);
      return scores;
    }
    const auto backend = opener.language(model);
    const Sentences pieces = text(4);
    std::vector<std::span<const int32_t>> spans(pieces.begin(), pieces.end());
    const auto take = [&](const auto& found) {
      for (const auto& piece : found)
        scores.insert(scores.end(), piece.begin(), piece.end());
    };
    if (!apart)
      take(backend->score(spans));
    for (size_t i = 0; apart && i < spans.size(); ++i)
      take(backend->score({spans[i]}));
    return scores;
  }

  ModelToRun floats, whole, meant;

 private:
  ModelToRun as(const fs::path& file) const { return {floats.options, floats.vocabulary, file}; }
  std::vector<ParameterShape> parameters() const {
    return list_parameters(floats.options, task_, floats.vocabulary);
  }
  /// Ids that all vocabularies have, and learned positions reach.
  static Sentences text(uint64_t seed) {
    Sentences text;
    for (const size_t length : {7, 2, 5, 3})
      text.push_back(testing::random_ids(length, 31, seed + length));
    return text;
  }

  void write_meant(const SafetensorsReader& int8) const {
    std::deque<std::vector<float>> numbers;
    std::map<std::string, TensorView> tensors;
    for (const ParameterShape& parameter : parameters()) {
      const TensorView& view = int8.at(parameter.name);
      std::vector<float>& values = numbers.emplace_back();
      if (view.type == ElementType::kI8) {
        const TensorView& scales = int8.at(parameter.name + ".scale");
        for (int64_t i = 0; i < view.count(); ++i)
          values.push_back(
              static_cast<float>(static_cast<int8_t>(view.data[i])) *
              to_floats(scales.type, scales.data)[i / view.shape[1]]);
      } else {
        values = to_floats(view.type, view.data);
      }
      tensors[parameter.name] = {ElementType::kF32, view.shape, std::as_bytes(std::span(values))};
    }
    write_safetensors(meant.parameters, tensors, {});
  }

  Task task_;
  testing::TemporaryFolder folder_;
};

std::string bytes(const std::vector<double>& scores) {
  return bytes_of(std::span<const double>(scores));
}

double mean_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

void expect_types(const Variant& variant, Task task) {
  const ThreeModels models(variant, task);
  const std::vector<double> right = models.score(models.floats, ComputeType::kModel);
  // What is stored as int8 is read as what it stands for.
  const std::vector<double> meant = models.score(models.meant, ComputeType::kFloat32);
  EXPECT_EQ(bytes(models.score(models.whole, ComputeType::kFloat32)), bytes(meant));
  EXPECT_NE(bytes(meant), bytes(right));
  // Computed in int8 or bfloat16: near, and the same whatever is beside it.
  for (const auto& [model, type] :
       {std::pair{&models.whole, ComputeType::kModel},
        {&models.floats, ComputeType::kInt8},
        {&models.floats, ComputeType::kBfloat16}}) {
    const std::vector<double> found = models.score(*model, type);
    EXPECT_NE(bytes(found), bytes(right)) << enum_name(type);
    EXPECT_EQ(bytes(found), bytes(models.score(*model, type, /*apart=*/true)));
    const double most = task == Task::kTranslation ? 0.6 : 0.4;
    EXPECT_LT(mean_difference(found, right), most) << enum_name(type);
  }
}

class RuntimeTypes : public ::testing::TestWithParam<Variant> {};
class RuntimeLanguageTypes : public ::testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(
    Models, RuntimeTypes, ::testing::ValuesIn(testing::runtime_variants()), testing::variant_name);
INSTANTIATE_TEST_SUITE_P(
    Models,
    RuntimeLanguageTypes,
    ::testing::ValuesIn(testing::runtime_language_variants()),
    testing::variant_name);

TEST_P(RuntimeTypes, AreNearFloat32) {
  expect_types(GetParam(), Task::kTranslation);
}
TEST_P(RuntimeLanguageTypes, AreNearFloat32) {
  expect_types(GetParam(), Task::kLanguageModel);
}

class RuntimeInt8File : public ::testing::Test {
 protected:
  /// The runtime's error for the int8 model with other tensors.
  std::string refusal(const Change& change) const {
    const SafetensorsReader reader(models_.whole.parameters);
    auto tensors = reader.tensors();
    change(tensors);
    ModelToRun changed = models_.whole;
    changed.parameters = folder_.path() / "changed.safetensors";
    write_safetensors(changed.parameters, tensors, {});
    return error_of([&] { testing::runtime().translation({changed}); });
  }

  testing::TemporaryFolder folder_;
  ThreeModels models_{{"", testing::small_options(MixerKind::kDynamicConv)}, Task::kTranslation};
  std::string matrix_ = "encoder.layer0.block.linear1.weight";
  std::string bias_ = "encoder.layer0.block.linear1.bias";
};

TEST_F(RuntimeInt8File, SaysWhatItIs) {
  EXPECT_EQ(testing::runtime().translation({models_.whole})->name(), "runtime, int8");
  EXPECT_EQ(
      RuntimeBackends(ComputeType::kAuto).translation({models_.whole})->name(), "runtime, int8");
  EXPECT_EQ(
      testing::runtime().translation({models_.floats, models_.whole})->name(),
      "runtime, float32, int8");
}

TEST_F(RuntimeInt8File, IsRefusedByLibTorchByName) {
  const std::string error = error_of([&] { testing::libtorch().translation({models_.whole}); });
  EXPECT_THAT(error, HasSubstr("int8 (seqconv quantize)"));
  EXPECT_THAT(error, HasSubstr("LibTorch"));
}

TEST_F(RuntimeInt8File, NeedsAScaleForEveryRow) {
  const std::string scale = matrix_ + ".scale";
  EXPECT_THAT(
      refusal([&](auto& tensors) { tensors.erase(scale); }),
      HasSubstr(concat("scales '", scale, "' are missing")));
  EXPECT_THAT(
      refusal([&](auto& tensors) {
        tensors[scale].shape = {1, tensors[scale].count()};
      }),
      HasSubstr("must have shape"));
  EXPECT_THAT(
      refusal([&](auto& tensors) { tensors[scale].type = ElementType::kI32; }),
      HasSubstr("floating-point"));
  const std::vector<float> numbers(1000, NAN);
  EXPECT_THAT(
      refusal([&](auto& tensors) {
        TensorView& view = tensors[scale];
        view.data = std::as_bytes(std::span(numbers)).first(view.data.size());
      }),
      HasSubstr("must hold finite numbers"));
}

TEST_F(RuntimeInt8File, HoldsWholeNumbersInMatricesAlone) {
  const std::vector<int8_t> numbers(10'000, 1);
  const auto as_int8 = [&](TensorView& view, ElementType type) {
    view.type = type;
    view.data = std::as_bytes(std::span(numbers)).first(static_cast<size_t>(view.count()));
  };
  EXPECT_THAT(
      refusal([&](auto& tensors) { as_int8(tensors[bias_], ElementType::kI8); }),
      HasSubstr("floating-point"));
  EXPECT_THAT(
      refusal([&](auto& tensors) { as_int8(tensors[matrix_], ElementType::kU8); }),
      HasSubstr("floating-point"));
  EXPECT_THAT(
      refusal([&](auto& tensors) { tensors[bias_ + ".scale"] = tensors[bias_]; }),
      HasSubstr("has no parameter"));
}

}  // namespace
}  // namespace seqconv::internal
