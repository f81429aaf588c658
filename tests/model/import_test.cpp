#include "model/checkpoint/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>

#include "model/checkpoint/export.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/pytorch_writer.h"
#include "model/model_description.h"
#include "support.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Checkpoints of one model in every key scheme and container: the same tensors.
namespace seqconv::internal {

namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::synthetic;
using testing::synthetic_import;
using testing::TemporaryFolder;
using testing::values_of;

void expect_same_tensors(const std::filesystem::path& found, const std::filesystem::path& wanted) {
  const SafetensorsReader a(found);
  const SafetensorsReader b(wanted);
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const auto& [name, view] : b.tensors()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(a.at(name).shape, view.shape);
    EXPECT_EQ(values_of(a.at(name)), values_of(view));
  }
}

struct Case {
  const char* name;
  const char* expected;
  ElementType type = ElementType::kF32;
};

class ImportSchemes : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Files,
    ImportSchemes,
    ::testing::Values(
        Case{"published_2019", "dynamic"},
        Case{"published", "dynamic"},
        Case{"main", "dynamic"},
        Case{"main_omegaconf_legacy", "dynamic"},
        Case{"half", "dynamic", ElementType::kF16},
        Case{"bfloat16", "dynamic", ElementType::kBF16},
        Case{"light_strided", "light"},
        Case{"light_flat_kernel_legacy", "light"},
        Case{"talk", "talk"},
        Case{"talk_legacy", "talk"}),
    [](const auto& info) { return info.param.name; });

TEST_P(ImportSchemes, GiveTheSameTensorsAndOptions) {
  const Case& file = GetParam();
  const TemporaryFolder folder;
  import_checkpoint(synthetic_import({concat(file.name, ".pt")}, folder.path()));
  const auto parameters = folder.path() / "model.safetensors";
  expect_same_tensors(parameters, synthetic(concat(file.expected, ".safetensors")));
  const SafetensorsReader written(parameters);
  for (const auto& [name, view] : written.tensors())
    EXPECT_EQ(view.type, file.type) << name;

  const auto model = read_translation_description(folder.path());
  const bool talk = std::string(file.expected) == "talk";
  const MixerKind kind = talk                 ? MixerKind::kTalk
      : std::string(file.expected) == "light" ? MixerKind::kLightConv
                                              : MixerKind::kDynamicConv;
  for (const StackOptions* stack : {&model.options.encoder, &model.options.decoder}) {
    EXPECT_EQ(stack->layers, 1);
    EXPECT_EQ(stack->block_at(0), kind);
    EXPECT_EQ(stack->heads, 2);
    EXPECT_EQ(stack->kernel_size_at(0), talk ? 0 : 3);
    EXPECT_EQ(stack->max_offset_at(0), talk ? 3 : 0);
    EXPECT_TRUE(stack->glu_at(0));
  }
  EXPECT_EQ(model.options.norm, NormPlacement::kPre);
  EXPECT_EQ(model.options.tie, Tying::kNone);
  EXPECT_EQ(model.options.dropout, 0.25);
  EXPECT_EQ(model.options.max_positions, 64);
  EXPECT_TRUE(model.text.options.joined);
}

TEST(Import, TakesTheMovingAverageWhenAsked) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({"ema.pt"}, folder.path());
  request.weights = CheckpointWeights::kEma;
  import_checkpoint(request);
  expect_same_tensors(folder.path() / "model.safetensors", synthetic("dynamic.safetensors"));
  request.checkpoints = {synthetic("main.pt")};
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      AllOf(HasSubstr("main.pt"), HasSubstr("no moving average")));
}

TEST(Import, WithoutArgumentsNeedsAPreset) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({"bare.pt"}, folder.path() / "m");
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      AllOf(HasSubstr("model.decoder.heads"), HasSubstr("--preset")));
  EXPECT_FALSE(std::filesystem::exists(request.output));
  request.preset = [](ModelOptions& options) {
    for (StackOptions* stack : {&options.encoder, &options.decoder}) {
      stack->layers = 1;
      stack->heads = 2;
      stack->kernel_sizes = {3};
    }
  };
  import_checkpoint(request);
  expect_same_tensors(folder.path() / "m" / "model.safetensors", synthetic("dynamic.safetensors"));
}

TEST(Import, AveragesSeveralCheckpointsInFloat64) {
  const TemporaryFolder folder;
  // ema.pt holds the same values plus 1.
  import_checkpoint(
      synthetic_import({"published.pt", "ema.pt", "half.pt", "ema.pt"}, folder.path()));
  const SafetensorsReader mean(folder.path() / "model.safetensors");
  const SafetensorsReader one(synthetic("dynamic.safetensors"));
  for (const auto& [name, view] : one.tensors()) {
    SCOPED_TRACE(name);
    std::vector<double> wanted = values_of(view);
    for (double& value : wanted)
      value += 0.5;
    EXPECT_EQ(mean.at(name).type, ElementType::kF32);
    EXPECT_EQ(values_of(mean.at(name)), wanted);
  }
}

/// A checkpoint like `name`, with an infinity in the middle of one tensor.
std::filesystem::path spoiled_checkpoint(const std::string& name, const TemporaryFolder& folder) {
  const FairseqCheckpoint good(synthetic(name), CheckpointWeights::kTrained);
  PyTorchContent content{{{"args", nullptr}, {"cfg", {{"model", good.arguments()}}}}, "model", {}};
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [key, tensor] : good.tensors()) {
    std::vector<std::byte>& own = bytes[key];
    tensor.visit([&](std::span<const std::byte> piece) {
      own.insert(own.end(), piece.begin(), piece.end());
    });
    if (key == "encoder.layers.0.fc1.weight") {
      const size_t size = element_size(tensor.type);
      const size_t end = own.size() / size / 2 * size;
      own[end - 1] = std::byte{0xFF};
      own[end - 2] = std::byte{0x80};
    }
    content.tensors.push_back({key, {tensor.type, tensor.shape, own}});
  }
  const auto file = folder.path() / ("spoiled_" + name);
  write_pytorch(file, content);
  return file;
}

TEST(Import, RefusesNumbersThatAreNotFinite) {
  const TemporaryFolder folder;
  for (const std::string name : {"published.pt", "bfloat16.pt"})
    for (const bool average : {false, true}) {
      ImportRequest request = synthetic_import({}, folder.path() / "m");
      request.checkpoints = {spoiled_checkpoint(name, folder)};
      if (average)
        request.checkpoints.insert(request.checkpoints.begin(), synthetic(name));
      EXPECT_THAT(
          error_of([&] { import_checkpoint(request); }),
          AllOf(
              HasSubstr("spoiled_" + name),
              HasSubstr("'encoder.layers.0.fc1.weight'"),
              HasSubstr("1 of them is NaN or infinite")));
      EXPECT_FALSE(std::filesystem::exists(folder.path() / "m" / "model.safetensors"));
    }
}

TEST(Import, ListsWhatDoesNotFit) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({"published.pt", "talk.pt"}, folder.path() / "m");
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      AllOf(
          HasSubstr("talk.pt"),
          HasSubstr("missing: encoder.layers.0.conv.weight_linear.weight"),
          HasSubstr("left over: decoder.layers.0.conv.offsets.bias"),
          Not(HasSubstr("version"))));
  EXPECT_FALSE(std::filesystem::exists(request.output));
}

TEST(Import, ChecksTheDictionaries) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({"published.pt"}, folder.path() / "m");
  request.text.target_dictionary = folder.write("short.txt", "a 1\nb 1\n");
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      AllOf(
          HasSubstr("short.txt: wrong dictionary for this checkpoint"),
          HasSubstr("has 6 symbols"),
          HasSubstr("has 12 rows")));
  request.text.target_dictionary.clear();
  EXPECT_THAT(
      error_of<UsageError>([&] { import_checkpoint(request); }),
      HasSubstr("needs --target-dictionary"));
  request.text.dictionary = synthetic("dict.txt");
  EXPECT_THAT(
      error_of<UsageError>([&] { import_checkpoint(request); }),
      HasSubstr("--dictionary is for language models"));
}

/// published.pt with the names that `rename` makes of its own.
std::string renamed_checkpoint(
    const TemporaryFolder& folder, const std::function<std::string(const std::string&)>& rename) {
  const FairseqCheckpoint published(synthetic("published.pt"), CheckpointWeights::kTrained);
  PyTorchContent content{{{"cfg", {{"model", published.arguments()}}}}, "model", {}};
  std::deque<std::vector<std::byte>> bytes;
  for (const auto& [name, tensor] : published.tensors()) {
    std::vector<std::byte>& own = bytes.emplace_back();
    tensor.visit([&](std::span<const std::byte> piece) {
      own.insert(own.end(), piece.begin(), piece.end());
    });
    content.tensors.push_back({rename(name), {tensor.type, tensor.shape, own}});
  }
  const auto file = folder.path() / "renamed.pt";
  write_pytorch(file, content);
  return file.string();
}

/// published.pt with an adaptive softmax of words 0 to 5 and a tail of half the
/// width in place of its output matrix; element i of each matrix is i / 8. With
/// `factor` 0 no argument tells the factor, and there are two tails of that
/// width.
class AdaptiveCheckpoint {
 public:
  explicit AdaptiveCheckpoint(const std::filesystem::path& file, double factor = 2) {
    const FairseqCheckpoint published(synthetic("published.pt"), CheckpointWeights::kTrained);
    Json arguments = published.arguments();
    arguments["adaptive_softmax_cutoff"] = "6";
    if (factor > 0)
      arguments["adaptive_softmax_factor"] = factor;
    arguments["adaptive_softmax_dropout"] = 0.125;
    arguments["tie_adaptive_weights"] = false;
    arguments["tie_adaptive_proj"] = false;
    content_.settings = {{"cfg", {{"model", arguments}}}};
    for (const auto& [name, tensor] : published.tensors()) {
      if (name == "decoder.embed_out")
        continue;
      std::vector<std::byte>& own = bytes_.emplace_back();
      tensor.visit([&](std::span<const std::byte> piece) {
        own.insert(own.end(), piece.begin(), piece.end());
      });
      content_.tensors.push_back({name, {tensor.type, tensor.shape, own}});
    }
    const std::string softmax = "decoder.adaptive_softmax.";
    const int64_t tails = factor > 0 ? 1 : 2;
    add(softmax + "head.weight", {6 + tails, 4});
    for (int64_t i = 0; i < tails; ++i) {
      add(concat(softmax, "tail.", i, ".0.weight"), {2, 4});
      add(concat(softmax, "tail.", i, ".2.weight"), {6 / tails, 2});
    }
    write_pytorch(file, content_);
  }

  static std::vector<double> numbers(size_t count) {
    std::vector<double> numbers(count);
    for (size_t i = 0; i < count; ++i)
      numbers[i] = static_cast<double>(i) / 8;
    return numbers;
  }

 private:
  void add(const std::string& name, const std::vector<int64_t>& shape) {
    std::vector<float>& own = floats_.emplace_back();
    for (const double number : numbers(static_cast<size_t>(shape[0] * shape[1])))
      own.push_back(static_cast<float>(number));
    content_.tensors.push_back({name, {ElementType::kF32, shape, std::as_bytes(std::span(own))}});
  }

  PyTorchContent content_{{}, "model", {}};
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<std::vector<float>> floats_;
};

TEST(Import, FindsAFactorOfWidthsThatWereRoundedDown) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "adaptive.pt";
  const AdaptiveCheckpoint checkpoint(file, /*factor=*/0);
  ImportRequest request = synthetic_import({}, folder.path() / "m");
  request.checkpoints = {file};
  import_checkpoint(request);
  const AdaptiveOptions adaptive = read_translation_description(request.output).options.adaptive;
  EXPECT_EQ(adaptive.softmax_cutoffs, (std::vector<int64_t>{6, 9}));
  EXPECT_NEAR(adaptive.softmax_factor, std::sqrt(2.0), 1e-9);  // 4, 2, 2
}

TEST(Import, ReadsAnAdaptiveSoftmaxOfATranslationModelAndExportsIt) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "adaptive.pt";
  const AdaptiveCheckpoint checkpoint(file);
  ImportRequest request = synthetic_import({}, folder.path() / "m");
  request.checkpoints = {file};
  import_checkpoint(request);
  const auto model = read_translation_description(request.output);
  const AdaptiveOptions& adaptive = model.options.adaptive;
  EXPECT_EQ(adaptive.softmax_cutoffs, std::vector<int64_t>{6});
  EXPECT_EQ(adaptive.softmax_factor, 2);
  EXPECT_EQ(adaptive.softmax_dropout, 0.125);
  EXPECT_TRUE(adaptive.input_cutoffs.empty());
  EXPECT_EQ(model.options.tie, Tying::kNone);
  const SafetensorsReader written(request.output + "/model.safetensors");
  for (const auto& [name, shape] :
       {std::pair<std::string, std::vector<int64_t>>{"head", {7, 4}},
        {"tail0_projection", {2, 4}},
        {"tail0_words", {6, 2}}}) {
    const TensorView& view = written.at("output.adaptive." + name);
    EXPECT_EQ(view.shape, shape) << name;
    EXPECT_EQ(values_of(view), AdaptiveCheckpoint::numbers(static_cast<size_t>(view.count())));
  }
  EXPECT_FALSE(written.tensors().contains("output.weight"));

  const auto exported = folder.path() / "exported.pt";
  export_model(request.output, ExportFormat::kFairseq, exported);
  const FairseqCheckpoint theirs(exported, CheckpointWeights::kTrained);
  EXPECT_TRUE(theirs.tensors().contains("decoder.adaptive_softmax.tail.0.2.weight"));
  EXPECT_EQ(theirs.arguments().at("adaptive_softmax_cutoff"), "6");
  EXPECT_EQ(theirs.arguments().at("adaptive_softmax_dropout"), 0.125);
  request.checkpoints = {exported};
  request.output = folder.path() / "again";
  import_checkpoint(request);
  expect_same_tensors(
      folder.path() / "again" / "model.safetensors", folder.path() / "m" / "model.safetensors");
  EXPECT_EQ(
      write_options(read_translation_description(request.output).options),
      write_options(model.options));
}

TEST(Import, DropsWhatWrappersPutInFrontOfAllNames) {
  for (const char* wrapper : {"module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    SCOPED_TRACE(wrapper);
    const TemporaryFolder folder;
    ImportRequest request = synthetic_import({}, folder.path() / "m");
    request.checkpoints = {
        renamed_checkpoint(folder, [&](const std::string& name) { return wrapper + name; })};
    import_checkpoint(request);
    expect_same_tensors(
        folder.path() / "m" / "model.safetensors", synthetic("dynamic.safetensors"));
  }
}

TEST(Import, DropsTheWrapperOfAPartThatWasCompiledByItself) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({}, folder.path() / "m");
  request.checkpoints = {renamed_checkpoint(folder, [](const std::string& name) {
    const std::string encoder = "encoder.";
    return name.starts_with(encoder) ? encoder + "_orig_mod." + name.substr(encoder.size()) : name;
  })};
  import_checkpoint(request);
  expect_same_tensors(folder.path() / "m" / "model.safetensors", synthetic("dynamic.safetensors"));
}

TEST(Import, RefusesAWrapperInFrontOfSomeNames) {
  const TemporaryFolder folder;
  ImportRequest request = synthetic_import({}, folder.path() / "m");
  request.checkpoints = {renamed_checkpoint(folder, [](const std::string& name) {
    return (name.starts_with("encoder.") ? "module._orig_mod." : "module.") + name;
  })};
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      AllOf(
          HasSubstr("renamed.pt: all names"),
          HasSubstr("or none must begin with 'module._orig_mod.'"),
          HasSubstr("'module._orig_mod.encoder."),
          HasSubstr("'module.decoder.")));
  EXPECT_FALSE(std::filesystem::exists(request.output));
}

TEST(Import, LeavesATrainedModelAlone) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "training");
  EXPECT_THAT(
      error_of([&] { import_checkpoint(synthetic_import({"published.pt"}, folder.path())); }),
      HasSubstr("holds its training"));
}

TEST(Import, WritesNeitherIntoNorBelowATrainedModelByAnyPath) {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  std::filesystem::create_directories(run / "training" / "checkpoints");
  folder.write("run/training/state.safetensors", "");
  std::filesystem::create_directory_symlink("run", folder.path() / "link");
  for (const char* output :
       {"run/",
        "run/sub/..",
        "run/sub/../",
        "run/sub",
        "run/sub/sub",
        "run/training",
        "run/training/",
        "run/training/checkpoints",
        "link/training/new",
        "other/../run"})
    EXPECT_THAT(
        error_of(
            [&] { import_checkpoint(synthetic_import({"published.pt"}, folder.path() / output)); }),
        HasSubstr("holds its training"))
        << output;
  EXPECT_FALSE(std::filesystem::exists(run / "sub"));
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Import, WritesNotOverItsCheckpoint) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(synthetic("published.pt"), folder.path() / "model.safetensors");
  ImportRequest request = synthetic_import({}, folder.path());
  request.checkpoints = {folder.path() / "model.safetensors"};
  EXPECT_THAT(
      error_of([&] { import_checkpoint(request); }),
      HasSubstr("must not hold the checkpoint to import"));
}

}  // namespace
}  // namespace seqconv::internal
