#include <gtest/gtest.h>

#include "base/options.h"
#include "libtorch/models/language_model.h"
#include "libtorch/models/translation_model.h"
#include "model/parameters.h"

// The counts of semantics.md 8.21, to the unit. Configurations are read from
// configs/, so that the presets themselves are what is counted.
namespace seqconv::internal {
namespace {

struct Preset {
  const char* file;
  std::vector<std::string> overrides;
  int64_t source_vocabulary;
  int64_t target_vocabulary;
  int64_t parameters;
};

ModelOptions read_model(
    const std::string& file, const std::vector<std::string>& overrides, Task task) {
  Json config = load_toml(std::string(SEQCONV_SOURCE_DIR) + "/configs/" + file + ".toml");
  for (const std::string& assignment : overrides)
    apply_override(config, assignment);
  ModelOptions options = ModelOptions::defaults(task);
  read_options(config["model"], "model", options);
  return options;
}

/// Whether the modules are built too, which takes seconds for a large model:
/// the list has been held to them already (parameter_list_test.cpp).
enum class Count { kListed, kBuilt };

int64_t listed(const ModelOptions& options, Task task, VocabularySizes sizes) {
  return parameter_count(list_parameters(options, task, sizes));
}

void expect(const Preset& preset, Count count = Count::kListed) {
  const ModelOptions options = read_model(preset.file, preset.overrides, Task::kTranslation);
  const VocabularySizes sizes = {preset.source_vocabulary, preset.target_vocabulary};
  EXPECT_EQ(listed(options, Task::kTranslation, sizes), preset.parameters) << preset.file;
  if (count == Count::kBuilt) {
    const TranslationModelImpl model(options, sizes.source, sizes.target);
    EXPECT_EQ(model.parameter_count(), preset.parameters) << preset.file;
  }
}

/// A language model's count to the unit, and what the papers print.
void expect_language_model(
    const char* file,
    const std::vector<std::string>& overrides,
    int64_t vocabulary,
    int64_t parameters,
    Count count = Count::kListed) {
  const ModelOptions options = read_model(file, overrides, Task::kLanguageModel);
  EXPECT_EQ(listed(options, Task::kLanguageModel, {0, vocabulary}), parameters) << file;
  if (count == Count::kBuilt) {
    const LanguageModelImpl model(options, vocabulary);
    EXPECT_EQ(model.parameter_count(), parameters) << file;
  }
}

const std::vector<std::string> kLight = {
    "model.encoder.block=lightconv", "model.decoder.block=lightconv"};
const std::vector<std::string> kDynamic = {
    "model.encoder.block=dynamicconv", "model.decoder.block=dynamicconv"};
const std::vector<std::string> kNoGlu = {"model.encoder.glu=false", "model.decoder.glu=false"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(ParameterCount, BigModelsMatchTheSpecification) {
  const char* big = "lightconv_wmt_en_de_big";
  expect({big, kLight, 32768, 32768, 208'867'504});
  expect({big, kLight + kNoGlu, 32768, 32768, 195'222'704});
  expect({big, kDynamic, 32768, 32768, 213'237'760});
  expect({big, kDynamic + kNoGlu, 32768, 32768, 199'592'960});
}

TEST(ParameterCount, ShallowDecodersMatchTheSpecification) {
  const char* big = "lightconv_wmt_en_de_big";
  expect(
      {big,
       kDynamic + kNoGlu +
           std::vector<std::string>{"model.decoder.layers=1", "model.decoder.kernel_sizes=[31]"},
       32768,
       32768,
       124'680'192});
  expect(
      {big,
       kDynamic + kNoGlu +
           std::vector<std::string>{
               "model.decoder.layers=3", "model.decoder.kernel_sizes=[3, 7, 15]"},
       32768,
       32768,
       153'976'832});
}

TEST(ParameterCount, TalkBigModelMatchesTheSpecification) {
  expect({"talkconv_wmt_en_de_big", {}, 32768, 32768, 209'191'232});
}

TEST(ParameterCount, IwsltModelsMatchTheSpecification) {
  const std::vector<std::string> untied = {"model.tie=none"};
  const char* conv = "lightconv_iwslt_de_en";
  const char* talk = "talkconv_iwslt_de_en";
  expect({conv, kLight + untied, 10152, 10152, 42'411'564});
  expect({conv, kDynamic + untied, 10152, 10152, 42'957'312});
  expect({talk, untied, 10152, 10152, 42'451'536});
  expect(
      {talk,
       untied +
           std::vector<std::string>{"model.encoder.conv_heads=512", "model.decoder.conv_heads=512"},
       10152,
       10152,
       47'663'616});
}

TEST(ParameterCount, SummarisationModelsMatchTheSpecification) {
  expect({"lightconv_cnndm", {}, 30000, 30000, 86'543'960});
  expect({"dynamicconv_cnndm", {}, 30000, 30000, 87'635'456});
  expect({"talkconv_cnndm_std", {}, 30000, 30000, 59'318'432});
  expect({"talkconv_cnndm_deep", {}, 30000, 30000, 83'794'160});
}

TEST(ParameterCount, Multi30kModelsMatchTheReferenceRuns) {
  expect({"multi30k_dynamicconv", {}, 6000, 6000, 5'146'112}, Count::kBuilt);
  expect({"multi30k_lightconv", {}, 6000, 6000, 5'095'112}, Count::kBuilt);
  expect({"multi30k_talk", {}, 6000, 6000, 5'104'164}, Count::kBuilt);
  expect({"multi30k_self_attention", {}, 6000, 6000, 5'489'664}, Count::kBuilt);
}

/// A rung of the ablation of Wu et al. 2019 (table 3): our count to the unit,
/// and the paper's in millions, which it cut or rounded.
void expect_rung(const char* name, int64_t parameters, int64_t millions) {
  const std::string file = std::string("ablation/") + name;
  expect({file.c_str(), {}, 32768, 32768, parameters});
  EXPECT_LT(std::abs(parameters - millions * 1'000'000), 1'000'000) << name;
}

TEST(ParameterCount, TheAblationLadderMatchesThePaper) {
  expect_rung("self_attention", 209'911'808, 210);
  expect_rung("self_attention_window", 209'911'808, 210);
  expect_rung("cnn", 208'836'608, 208);
  expect_rung("depthwise", 195'258'368, 195);
  expect_rung("increasing_kernels", 195'491'840, 195);
  expect_rung("dropconnect", 195'491'840, 195);
  expect_rung("weight_sharing", 195'222'704, 195);
  expect_rung("lightconv", 195'222'704, 195);
  expect_rung("dynamicconv", 199'592'960, 200);
  expect_rung("average_decoder", 260'261'888, 260);
  expect_rung("average_both", 310'611'968, 310);
}

TEST(ParameterCount, BiasesAreCounted) {
  // 3 + 3 layers of 256 channels, 4 heads, kernels 3, 7, 15.
  const std::vector<std::string> conv = {
      "model.encoder.conv_bias=true", "model.decoder.conv_bias=[true, false, true]"};
  expect({"multi30k_dynamicconv", conv, 6000, 6000, 5'146'112 + 5 * 256}, Count::kBuilt);
  expect(
      {"multi30k_dynamicconv",
       {"model.encoder.filter_bias=[false, true, false]"},
       6000,
       6000,
       5'146'112 + 4 * 7},
      Count::kBuilt);
}

const std::vector<std::string> kSixteenAttentionLayers = {
    "model.decoder.block=self_attention",
    "model.decoder.layers=16",
    "model.decoder.glu=false",
    "model.decoder.kernel_sizes=[]",
    "model.decoder.max_offsets=[]"};

TEST(ParameterCount, BillionWordModelsMatchThePaper) {
  // 793,471 types, special symbols included, in a multiple of eight.
  const char* preset = "lightconv_lm_gbw";
  expect_language_model(preset, {}, 793'472, 339'130'368);  // 339 M
  expect_language_model(                                    // 331 M
      preset,
      kSixteenAttentionLayers,
      793'472,
      330'500'096);
}

TEST(ParameterCount, WikiTextModelsMatchThePaper) {
  constexpr int64_t kWords = 267'744;
  const char* preset = "talkconv_lm_wiki103";
  expect_language_model(preset, {}, kWords, 241'965'328);  // 240 M
  std::vector<std::string> dynamic = {
      "model.decoder.block=dynamicconv",
      "model.decoder.max_offsets=[]",
      "model.decoder.kernel_sizes=[3, 5, 7, 15, 31, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, "
      "63]"};
  expect_language_model(preset, dynamic, kWords, 255'072'256);  // 255 M
  dynamic.emplace_back("model.decoder.heads=8");
  expect_language_model(preset, dynamic, kWords, 248'379'392);
  expect_language_model(  // 247 M
      preset,
      kSixteenAttentionLayers,
      kWords,
      246'933'504);
}

TEST(ParameterCount, SmallLanguageModels) {
  // 6 layers of 512 channels, two matrices of 10,000 words.
  constexpr int64_t kWords = 10'000;
  const int64_t words = 2 * kWords * 512;
  const int64_t layer = 512 * 1024 + 1024 + 512 * 512 + 512 + 2 * 512 * 2048 + 2048 + 512 + 4 * 512;
  const int64_t taps = 8 * (3 + 7 + 15 + 3 * 31);
  expect_language_model("lightconv_lm", {}, kWords, words + 6 * layer + taps, Count::kBuilt);
  expect_language_model("talkconv_lm", {}, kWords, words + 6 * layer + 6 * 513 * 8, Count::kBuilt);
}

TEST(ParameterCount, EveryPresetBuilds) {
  for (const char* file :
       {"lightconv_wmt_en_de",
        "lightconv_wmt_en_fr_big",
        "lightconv_wmt_zh_en_big",
        "lightconv_cnndm",
        "dynamicconv_cnndm",
        "talkconv_cnndm_std",
        "talkconv_cnndm_deep",
        "talkconv_base",
        "talkconv_wmt_en_fr_big"}) {
    const Json config = load_toml(std::string(SEQCONV_SOURCE_DIR) + "/configs/" + file + ".toml");
    ModelOptions options;
    read_options(config.at("model"), "model", options);
    EXPECT_NO_THROW(options.validate("model")) << file;
  }
}

}  // namespace
}  // namespace seqconv::internal
