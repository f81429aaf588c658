#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/options.h"
#include "model/model_writing.h"
#include "pipeline/limit_count.h"
#include "pipeline/scorer.h"
#include "pipeline/translator.h"
#include "translation_folder.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PipelineTest : public testing::TranslationFolder {};

TEST_F(PipelineTest, AModelComesBackBitForBit) {
  const LoadedModel loaded = load_model(root_ / "model");
  save_parameters(root_ / "again.safetensors", *loaded.model, {});
  EXPECT_EQ(
      read_file(root_ / "again.safetensors"), read_file(root_ / "model" / "model.safetensors"));
  EXPECT_EQ(loaded.decoding.beam, 3);
  EXPECT_EQ(loaded.options.dim, 16);
}

TEST_F(PipelineTest, EveryOptionOfALayerComesBack) {
  ModelOptions wanted = options();
  for (StackOptions* stack : {&wanted.encoder, &wanted.decoder}) {
    stack->layers = 4;
    stack->block = {
        MixerKind::kLightConv,
        MixerKind::kDynamicConv,
        MixerKind::kAverageAttention,
        MixerKind::kCnn};
    stack->renormalize_edges = {false, true, false, false};
    stack->kernel_sizes = {3, 2, 0, 5};
    stack->conv_heads = {16, 0, 0, 0};
    stack->glu = {false, true, false, false};
    stack->normalization = {
        ops::Normalization::kNone,
        ops::Normalization::kSoftmax,
        ops::Normalization::kSoftmax,
        ops::Normalization::kSoftmax};
    stack->conv_bias = {true, false, false, true};
    stack->filter_bias = {false, true, false, false};
    stack->query = {
        QuerySource::kConvInput,
        QuerySource::kBlockInput,
        QuerySource::kConvInput,
        QuerySource::kConvInput};
    stack->average_ffn = {true, true, false, true};
  }
  make_model("variants", 5, wanted);
  const LoadedModel loaded = load_model(root_ / "variants");
  EXPECT_EQ(write_options(loaded.options), write_options(wanted));
  const auto translate = [&] {
    return Translator(open({"variants"}), {}).translate({{"eins zwei", ""}})[0].translations[0];
  };
  EXPECT_EQ(translate().score, translate().score);
}

TEST_F(PipelineTest, AFolderOfAnEarlierVersionStillOpens) {
  const fs::path file = root_ / "model" / "config.json";
  Json config = parse_json(read_file(file), "test");
  for (const char* side : {"encoder", "decoder"}) {
    Json& stack = config["architecture"][side];
    for (const char* key :
         {"normalization", "renormalize_edges", "conv_bias", "filter_bias", "query", "average_ffn"})
      EXPECT_EQ(stack.erase(key), 1u) << key;
    stack["conv_heads"] = 0;
    stack["glu"] = true;
  }
  const auto parameters = load_model(root_ / "model").model->parameters();
  write_file_atomically(file, config.dump(2));
  EXPECT_EQ(load_model(root_ / "model").model->parameters().size(), parameters.size());
}

TEST_F(PipelineTest, ACheckpointFileFindsItsFolder) {
  create_folder(root_ / "model" / "training" / "checkpoints");
  const fs::path file = root_ / "model" / "training" / "checkpoints" / "a.safetensors";
  fs::copy_file(root_ / "model" / "model.safetensors", file);
  EXPECT_EQ(
      load_model(file).model->parameters().size(),
      load_model(root_ / "model").model->parameters().size());
  fs::copy_file(file, root_ / "lost.safetensors");
  EXPECT_THAT(
      message([&] { load_model(root_ / "lost.safetensors"); }),
      HasSubstr("is not inside a model folder"));
}

TEST_F(PipelineTest, TranslationsDoNotDependOnTheBatch) {
  const std::vector<std::string> lines = {
      "eins zwei",
      "",
      "fünf",
      "eins zwei drei vier fünf sechs sieben acht",
      "   ",
      "drei vier unbekannt",
      "fünf"};
  std::vector<TranslationInput> requests;
  for (const std::string& line : lines)
    requests.push_back({line, ""});
  TranslatorOptions options;
  options.search.max_length_b = 12;
  options.search.n_best = 2;
  const auto translate = [&](int64_t batch_tokens) {
    options.batch_tokens = batch_tokens;
    return Translator(open({"model"}), options).translate(requests);
  };
  const auto together = translate(1000), alone = translate(1);
  ASSERT_EQ(together.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto &found = together[i].translations, &wanted = alone[i].translations;
    ASSERT_EQ(found.size(), wanted.size()) << i;
    for (size_t n = 0; n < wanted.size(); ++n) {
      EXPECT_EQ(found[n].tokens, wanted[n].tokens);
      EXPECT_NEAR(found[n].score, wanted[n].score, 1e-5);
    }
  }
  for (const size_t blank : {1, 4})
    EXPECT_EQ(together[blank].translations[0].text, "");
  EXPECT_EQ(together[2].translations[0].tokens, together[6].translations[0].tokens);
}

TEST_F(PipelineTest, ARequestMayHaveASearchOfItsOwn) {
  TranslatorOptions options;
  options.search = {.beam = 2, .max_length_b = 4};
  const SearchOptions other = {.beam = 3, .n_best = 3, .max_length_b = 9};
  const Translator plain(open({"model"}), options);
  const auto found = plain.translate(
      {{{.text = "eins zwei"}},
       {{.text = "eins zwei", .search = other}},
       {{.text = "fünf", .search = other}},
       {{.text = "fünf"}}});
  options.search = resolve_search(other, options.search);
  const Translator wide(open({"model"}), options);
  for (const auto& [i, by] : {std::pair{0, &plain}, {1, &wide}, {2, &wide}, {3, &plain}}) {
    const auto wanted = by->translate({{{.text = i < 2 ? "eins zwei" : "fünf"}}})[0].translations;
    const auto& own = found[static_cast<size_t>(i)].translations;
    ASSERT_EQ(own.size(), wanted.size()) << i;
    for (size_t n = 0; n < wanted.size(); ++n)
      EXPECT_EQ(own[n].tokens, wanted[n].tokens) << i;
  }
}

TEST_F(PipelineTest, ARequestThatFailsLeavesTheOthersAsTheyAre) {
  const Translator translator(open({"model"}), {});
  const auto found = translator.translate(
      {{{.text = "eins"}},
       {{.text = "eins", .search = {.beam = 0}}},
       {{.text = "a\xFF"}},
       {.ids = std::vector<int32_t>{4, 1000}},
       {{.text = "eins", .target_prefix = "\xFF"}},
       {{.text = "eins"}}});
  EXPECT_THAT(found[1].error, HasSubstr("beam must be between 1 and"));
  EXPECT_THAT(found[2].error, HasSubstr("UTF-8"));
  EXPECT_THAT(found[3].error, HasSubstr("1000"));
  EXPECT_THAT(found[4].error, HasSubstr("UTF-8"));
  for (const size_t i : {1, 2, 3, 4})
    EXPECT_TRUE(found[i].translations.empty()) << i;
  const auto wanted = translator.translate({{{.text = "eins"}}})[0].translations[0].tokens;
  for (const size_t i : {0, 5}) {
    EXPECT_EQ(found[i].error, "");
    EXPECT_EQ(found[i].translations.at(0).tokens, wanted);
  }
}

TEST_F(PipelineTest, APrefixIsKept) {
  TranslatorOptions options;
  options.search.max_length_b = 8;
  const auto found = Translator(open({"model"}), options).translate({{"eins zwei", "acht sieben"}});
  EXPECT_THAT(found[0].translations[0].text, ::testing::StartsWith("acht sieben"));
}

TEST_F(PipelineTest, TranslationsThatEndAtTheirLimitAreCounted) {
  TranslatorOptions options;
  options.search.max_length_b = 2;
  const auto found = Translator(open({"model"}), options)
                         .translate({{"eins zwei"}, {"drei"}, {"fünf acht"}, {""}});
  LimitCount count;
  int64_t at_limit = 0;
  for (const TranslationOutcome& result : found) {
    EXPECT_EQ(result.at_limit, result.translations.at(0).tokens.size() == 3);  // </s> too
    at_limit += result.at_limit;
    count.add(result);
  }
  EXPECT_EQ(count.translations, 4);
  EXPECT_EQ(count.at_limit, at_limit);
  count = {.translations = 299, .at_limit = 3};
  EXPECT_THAT(
      count.warning("decoding"),
      ::testing::AllOf(HasSubstr("3 of 299 translations"), HasSubstr("decoding.no_repeat_ngram")));
  count.translations = 301;
  EXPECT_EQ(count.warning("decoding"), "");
}

TEST_F(PipelineTest, ScoresAreThoseOfTheSearch) {
  TranslatorOptions options;
  options.search.max_length_b = 8;
  const TranslationSystem model = open({"model"});
  const auto found = Translator(model, options).translate({{"eins zwei", "drei vier"}});
  const Translation& best = found[0].translations[0];
  const auto scores = score_pairs(
      *model.backend,
      {model.text.source->encode("eins zwei")},
      {model.text.target->encode(best.text)},
      100);
  EXPECT_NEAR(scores[0], best.log_probability, 1e-4);
  EXPECT_THAT(
      message([&] { score_pairs(*model.backend, {{4}}, {}, 100); }),
      HasSubstr("same number of lines, but got 1 and 0"));
}

TEST_F(PipelineTest, AnEnsembleOfOneModelTwiceIsThatModel) {
  TranslatorOptions options;
  options.search.max_length_b = 8;
  const auto translate = [&](const std::vector<std::string>& models) {
    return Translator(open(models), options).translate({{"eins zwei", ""}})[0].translations[0];
  };
  const auto one = translate({"model"});
  const auto two = translate({"model", "model"});
  EXPECT_EQ(one.tokens, two.tokens);
  EXPECT_NEAR(one.score, two.score, 1e-5);
}

TEST_F(PipelineTest, EnsemblesNeedTheSameText) {
  const auto error_with = [&](const char* other) {
    return message([&] { open({"model", other}); });
  };
  make_model("lower", 3, options(), {.lowercase = true});
  EXPECT_EQ(
      error_with("lower"),
      concat(
          "models of an ensemble must share 'text' of config.json, but ",
          (root_ / "model").string(),
          " and ",
          (root_ / "lower").string(),
          " differ in: lowercase"));
  write_file_atomically(root_ / "train", "ganz andere Wörter\n");
  make_model("other", 3);
  EXPECT_THAT(error_with("other"), HasSubstr("differ in: source dictionary"));
}

/// Does something between a model's description and its parameters.
class LateBackends : public BackendOpener {
 public:
  explicit LateBackends(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}

  std::string_view name() const override { return own_.name(); }
  std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const override {
    meanwhile_();
    return own_.translation(models);
  }
  std::shared_ptr<const LanguageBackend> language(const ModelToRun& model) const override {
    return own_.language(model);
  }

 private:
  TorchBackends own_;
  std::function<void()> meanwhile_;
};

TEST_F(PipelineTest, AModelThatIsReplacedWhileItIsOpenedIsNotMixed) {
  make_model("other", 4);
  const fs::path own = root_ / "model";
  const auto take = [&](const char* file) {
    write_file_atomically(own / file, read_file(root_ / "other" / file));
  };
  const auto open = [&](const std::function<void()>& meanwhile) {
    return message([&] { open_translation({own}, LateBackends(meanwhile)); });
  };
  // A training run saves its best model so.
  EXPECT_EQ(open([&] { take("model.safetensors"); }), "no error");
  for (const char* file : {"config.json", "dict.txt"})
    EXPECT_THAT(
        open([&] {
          take("model.safetensors");
          take(file);
        }),
        HasSubstr(concat(
            "'",
            (own / file).string(),
            "' was replaced or changed while the model was being opened")));
  // As average, import and quantize do: there is no moment for a mixture.
  const auto replace_parameters = [&] {
    write_model_folder(
        own,
        [&](const fs::path& file) {
          write_file_atomically(file, read_file(root_ / "other" / "model.safetensors"));
        },
        [] { throw Error("killed"); });
  };
  EXPECT_EQ(message(replace_parameters), "killed");
  EXPECT_THAT(
      message([&] { open_translation({own}, TorchBackends()); }),
      HasSubstr("is not a model folder"));
  take("config.json");
  EXPECT_THAT(
      open([&] { message(replace_parameters); }),
      HasSubstr("config.json' was replaced or changed"));
  take("config.json");
  const auto fail_early = [&] {
    write_model_folder(
        own, [](const fs::path&) { throw Error("a full disk"); }, [] {});
  };
  EXPECT_EQ(message(fail_early), "a full disk");
  EXPECT_NO_THROW(open_translation({own}, TorchBackends()));
}

TEST_F(PipelineTest, AConfigOfAnotherProgramIsNotWrittenOver) {
  const fs::path folder = root_ / "foreign";
  create_folder(folder);
  write_file_atomically(folder / "config.json", "{\"model_type\": \"x\"}");
  EXPECT_THAT(
      message([&] {
        write_model_folder(
            folder, [](const auto&) {}, [] {});
      }),
      HasSubstr("config.json' is of another program and would be lost"));
  EXPECT_EQ(read_file(folder / "config.json"), "{\"model_type\": \"x\"}");
}

TEST_F(PipelineTest, LongLinesAreCutToLearnedPositions) {
  make_model("learned", 3, learned(6));
  TranslatorOptions options;
  std::string line;
  for (int i = 0; i < 50; ++i)
    line += "eins ";
  const auto found = Translator(open({"learned"}), options)
                         .translate({{line, ""}, {"eins eins eins eins eins", ""}});
  EXPECT_EQ(found[0].translations[0].tokens, found[1].translations[0].tokens);
}

TEST_F(PipelineTest, ForeignFoldersAreRefused) {
  EXPECT_THAT(
      message([&] { load_model(root_ / "nowhere"); }),
      HasSubstr("there is no such file or folder"));
  EXPECT_THAT(message([&] { load_model(root_); }), HasSubstr("has no config.json"));
  const fs::path config = root_ / "model" / "config.json";
  const std::string good = read_file(config);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    write_file_atomically(config, bad);
    return message([&] { load_model(root_ / "model"); });
  };
  EXPECT_THAT(with("{", "["), HasSubstr("config.json"));
  EXPECT_THAT(with("seqconv-model", "other"), HasSubstr("format must be"));
  EXPECT_THAT(
      with("\"architecture\"", "\"architektur\""), HasSubstr("the key 'architecture' is missing"));
  EXPECT_THAT(
      with("\"ffn_dim\"", "\"fnn_dim\""), HasSubstr("did you mean 'architecture.ffn_dim'?"));
}

TEST_F(PipelineTest, ParametersMustFitTheArchitecture) {
  ModelOptions wider = options();
  wider.ffn_dim = 24;
  make_model("wider", 3, wider);
  fs::copy_file(root_ / "wider" / "model.safetensors", root_ / "model" / "wider.safetensors");
  EXPECT_THAT(
      message([&] { load_model(root_ / "model" / "wider.safetensors"); }),
      HasSubstr("must have shape [16, 16], but got [24, 16]"));
  ModelOptions deeper = options();
  deeper.encoder.layers = 2;
  make_model("deeper", 3, deeper);
  fs::copy_file(root_ / "deeper" / "model.safetensors", root_ / "model" / "deeper.safetensors");
  EXPECT_THAT(
      message([&] { load_model(root_ / "model" / "deeper.safetensors"); }),
      HasSubstr("the model has no parameter 'encoder.layer1."));
  fs::copy_file(root_ / "model" / "model.safetensors", root_ / "deeper" / "shallow.safetensors");
  EXPECT_THAT(
      message([&] { load_model(root_ / "deeper" / "shallow.safetensors"); }),
      HasSubstr("no tensor 'encoder.layer1."));
}

}  // namespace
}  // namespace seqconv::internal
