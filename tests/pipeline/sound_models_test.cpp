#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/safetensors.h"
#include "language_folder.h"
#include "pipeline/generator.h"
#include "pipeline/perplexity.h"
#include "pipeline/scorer.h"
#include "pipeline/translator.h"
#include "support/errors.h"
#include "translation_folder.h"

// What a model must never do, whatever its parameters: choose rows that are no
// text, pass numbers off that are none, or give other answers to two threads.
namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::error_of;
using ::testing::HasSubstr;
using testing::LanguageFolder;
using testing::LanguageSettings;
using ::testing::Not;
using testing::TranslationFolder;

class SoundTranslation : public TranslationFolder {
 protected:
  SoundTranslation() { at::set_num_threads(1); }

  /// The model with every parameter changed, and written again.
  void change_model(const std::function<void(at::Tensor&)>& change) const {
    const LoadedModel loaded = load_model(root_ / "model");
    at::NoGradGuard no_grad;
    for (at::Tensor parameter : loaded.model->parameters())
      change(parameter);
    save_parameters(root_ / "model" / "model.safetensors", *loaded.model, {});
  }

  /// A file of parameters with tensor `name` of another type and content.
  void replace_tensor(const std::string& name, const at::Tensor& value) const {
    const auto file = root_ / "model" / "model.safetensors";
    const std::string copy = root_ / "copy.safetensors";
    std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
    const SafetensorsReader reader(copy);
    auto tensors = reader.tensors();
    TensorView& view = tensors.at(name);
    view.type = value.scalar_type() == at::kHalf ? ElementType::kF16
        : value.scalar_type() == at::kBFloat16   ? ElementType::kBF16
        : value.scalar_type() == at::kDouble     ? ElementType::kF64
                                                 : ElementType::kF32;
    view.data = {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()};
    write_safetensors(file, tensors, {});
  }
};

TEST_F(SoundTranslation, NeverChoosesRowsThatOnlyFillTheDictionaryUp) {
  make_model("other", 4);
  for (const bool ensemble : {false, true})
    for (const int64_t no_repeat : {0, 1}) {
      std::vector<std::string> models = {"model"};
      if (ensemble)
        models.push_back("other");
      const TranslationSystem system = open(models);
      EXPECT_EQ(system.text.target->vocabulary().padding().size(), 4u);
      TranslatorOptions options;
      options.search = {
          .beam = 200, .n_best = 200, .max_length_b = 2, .no_repeat_ngram = no_repeat};
      const auto found =
          Translator(system, options).translate({{"eins madeupword0001", ""}})[0].translations;
      EXPECT_GE(found.size(), 50u);
      for (const Translation& translation : found)
        EXPECT_THAT(translation.tokens, Not(::testing::Contains("madeupword")));
    }
}

TEST_F(SoundTranslation, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  const std::string name = "decoder.layer0.feed_forward.fc1.bias";
  const at::Tensor good = at::ones({16});
  const auto error = [&](const at::Tensor& bias) {
    replace_tensor(name, bias);
    return error_of([&] { load_model(root_ / "model"); });
  };
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    at::Tensor bad = good.to(type).clone();
    replace_tensor(name, bad);
    load_model(root_ / "model");
    bad[3] = NAN;
    bad[15] = -INFINITY;
    EXPECT_THAT(
        error(bad),
        AllOf(
            HasSubstr("model.safetensors"),
            HasSubstr("'" + name + "'"),
            HasSubstr("2 of them are NaN or infinite")));
  }
  at::Tensor large = good.to(at::kDouble).clone();
  large[0] = 1e300;  // no float32
  EXPECT_THAT(error(large), HasSubstr("1 of them is NaN or infinite"));
}

TEST_F(SoundTranslation, FiniteWeightsWithoutAFiniteProbabilityAreAnError) {
  change_model([](at::Tensor& parameter) { parameter.mul_(1e30); });
  const TranslationSystem model = open({"model"});
  for (const char* prefix : {"", "zwei"}) {
    const auto found = Translator(model, {}).translate(
        {{{.text = ""}}, {{.text = "eins", .target_prefix = prefix}}, {{.text = "eins zwei"}}});
    EXPECT_EQ(found[0].error, "");
    for (const size_t i : {1, 2})
      EXPECT_THAT(
          found[i].error,
          AllOf(::testing::StartsWith("the model gives no token a finite"), EndsWith("damaged")));
  }
  EXPECT_FALSE(std::isfinite(score_pairs(*model.backend, {{4, 5}}, {{6}}, 100)[0]));
}

TEST_F(SoundTranslation, OneModelOfAnEnsembleIsEnoughForThatError) {
  make_model("sound", 3);
  change_model([](at::Tensor& parameter) { parameter.mul_(1e30); });
  EXPECT_THAT(
      Translator(open({"sound", "model"}), {}).translate({{"eins", ""}})[0].error,
      HasSubstr("no token a finite probability"));
}

/// The notes of one request's result.
std::vector<std::string> notes_of(const Translator& translator, const TranslationInput& request) {
  return translator.translate({request})[0].notes;
}

TEST_F(SoundTranslation, APrefixThatDoesNotFitIsNoted) {
  make_model("learned", 3, learned(6));
  const auto said = [&](const std::string& prefix, int64_t longest) {
    TranslatorOptions options;
    options.search.max_length_b = longest;
    return notes_of(
        Translator(open({"learned"}), options), {{.text = "eins", .target_prefix = prefix}});
  };
  EXPECT_THAT(said("zwei zwei", 2), ::testing::IsEmpty());
  EXPECT_THAT(
      said("zwei zwei zwei zwei zwei zwei", 9),
      Contains(
          "a target prefix of 6 tokens is cut to the 5 that the model's learned positions allow"));
  EXPECT_THAT(
      said("zwei zwei zwei", 2),
      ElementsAre(
          "a target prefix of 3 tokens is cut to the 2 that max_length_a and max_length_b allow"));
}

TEST_F(SoundTranslation, EachSideIsCutToItsOwnPositions) {
  ModelOptions architecture = options();
  architecture.encoder.positions = SidePositions::kLearned;
  architecture.encoder.max_positions = 4;
  make_model("source", 3, architecture);
  architecture.decoder.positions = SidePositions::kLearned;
  architecture.max_positions = 7;
  make_model("both", 3, architecture);
  TranslatorOptions options;
  options.search.max_length_b = 9;
  const auto said = [&](const std::string& model, const std::string& prefix) {
    return notes_of(
        Translator(open({model}), options),
        {{.text = "eins eins eins eins", .target_prefix = prefix}});
  };
  const std::string prefix = "zwei zwei zwei zwei zwei zwei zwei zwei";
  for (const char* model : {"source", "both"})
    EXPECT_THAT(said(model, ""), Contains("a line of 5 tokens is cut to the model's 4 positions"))
        << model;
  EXPECT_THAT(said("source", prefix), Not(Contains(HasSubstr("target prefix"))));
  EXPECT_THAT(
      said("both", prefix),
      Contains(
          "a target prefix of 8 tokens is cut to the 6 that the model's learned positions allow"));
}

TEST_F(SoundTranslation, APrefixThatTheModelDoesNotKnowIsNoted) {
  const Translator translator(open({"model"}), {});
  const auto said = [&](const std::string& line, const std::string& prefix) {
    return notes_of(translator, {{.text = line, .target_prefix = prefix}});
  };
  EXPECT_THAT(said("eins", "zwei"), ::testing::IsEmpty());
  EXPECT_THAT(
      said("eins", "zwei neun </s>"),
      ElementsAre("2 of the 3 symbols of the target prefix are unknown to the model: <unk> stands "
                  "for them"));
  EXPECT_THAT(
      said("", "zwei"),
      ElementsAre("an empty line has no translation: its target prefix is not used"));
}

TEST_F(SoundTranslation, WhatLearnedPositionsCutIsNoted) {
  make_model("learned", 3, learned(6));
  TranslatorOptions options;
  const Translator translator(open({"learned"}), options);
  options.search.min_length = 5;
  const Translator endless(open({"learned"}), options);
  options.search.max_length_b = 5;
  const Translator bounded(open({"learned"}), options);
  EXPECT_THAT(
      notes_of(translator, {{.text = "eins eins eins eins eins eins"}}),
      Contains("a line of 7 tokens is cut to the model's 6 positions"));
  EXPECT_THAT(
      notes_of(endless, {{.text = "eins"}}),
      ElementsAre("the translation may be cut: it reaches the end of the model's 6 positions"));
  EXPECT_THAT(notes_of(bounded, {{.text = "eins"}}), ::testing::IsEmpty());
}

/// What several threads say of the lines at once, one after the other of each.
std::vector<std::vector<Translation>> translate_at_once(
    const Translator& translator, const std::vector<std::string>& lines) {
  std::vector<std::vector<Translation>> found(lines.size());
  std::atomic<size_t> waiting{lines.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < lines.size(); ++i)
    threads.emplace_back([&, i] {
      for (--waiting; waiting > 0;)
        std::this_thread::yield();
      found[i] = translator.translate({{{.text = lines[i]}}})[0].translations;
    });
  for (std::thread& thread : threads)
    thread.join();
  return found;
}

TEST_F(SoundTranslation, ThreadsThatShareAModelSayWhatOneSays) {
  std::vector<std::string> lines;
  for (int length : {3, 70, 140, 300, 600, 1200, 4090, 4200}) {
    std::string& line = lines.emplace_back();
    for (int i = 0; i < length; ++i)
      line += i % 3 == 0 ? "eins " : i % 7 == 0 ? "acht " : "sechs ";
  }
  TranslatorOptions options;
  options.search.max_length_b = 3;
  const auto make = [&] { return Translator(open({"model"}), options); };
  std::vector<Translation> wanted;
  for (const std::string& line : lines)
    wanted.push_back(make().translate({{{.text = line}}})[0].translations[0]);
  for (int round = 0; round < 10; ++round) {
    const auto found = translate_at_once(make(), lines);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(found[i][0].tokens, wanted[i].tokens);
      EXPECT_EQ(found[i][0].score, wanted[i].score);
    }
  }
}

std::atomic<int64_t> drawn_tensors{0};

/// Counts the tensors that are filled with random numbers.
class DrawCounter {
 public:
  DrawCounter() {
    drawn_tensors = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(
        [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          const std::string name = call.name();
          drawn_tensors += name == "aten::normal_" || name == "aten::uniform_";
          return nullptr;
        }));
  }
  ~DrawCounter() { at::removeCallback(handle_); }
  int64_t count() const { return drawn_tensors; }

 private:
  at::CallbackHandle handle_;
};

TEST_F(SoundTranslation, OpeningAModelDrawsNoRandomNumbers) {
  const DrawCounter opening;
  load_model(root_ / "model");
  load_model_config(root_ / "model");
  EXPECT_EQ(opening.count(), 0);
  const TranslationModelImpl fresh(options(), 16, 16, 3);
  EXPECT_GT(opening.count(), 5);
}

class SoundLanguage : public LanguageFolder {};

TEST_F(SoundLanguage, NeverDrawsRowsThatOnlyFillTheDictionaryUp) {
  const LanguageSystem model = make_system(make({}));
  EXPECT_EQ(model.text.text->vocabulary().padding().size(), 4u);
  for (const SamplingOptions& sampling :
       {SamplingOptions{.temperature = 1e9},
        SamplingOptions{.temperature = 1e9, .top_k = 1000},
        SamplingOptions{.temperature = 1e9, .top_p = 0.999}}) {
    std::string text;
    const GenerationReport report = generate_text(
        model, "", {.length = 400, .sampling = sampling}, [&](const std::string& more) {
          text += more;
        });
    EXPECT_EQ(report.tokens, 400);
    EXPECT_THAT(text, AllOf(HasSubstr("eins"), Not(HasSubstr("madeupword"))));
  }
}

TEST_F(SoundLanguage, FiniteWeightsWithoutAFiniteProbabilityAreAnError) {
  const LoadedLanguageModel model = make({});
  at::NoGradGuard no_grad;
  for (at::Tensor parameter : model.model->parameters())
    parameter.mul_(1e30);
  for (const auto kind : {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    LanguageSystem of_kind = make_system(model);
    of_kind.stream.samples = kind;
    EXPECT_THAT(
        error_of([&] {
          PerplexityMeter meter(of_kind, {});
          meter.add_line("eins zwei", "text:1");
          meter.finish();
        }),
        HasSubstr("text:1: the model gives the text here no finite"));
  }
  EXPECT_NE(
      error_of([&] { generate_text(make_system(model), "eins", {}, [](const std::string&) {}); }),
      "");
}

TEST_F(SoundLanguage, OpeningAModelDrawsNoRandomNumbers) {
  make({});
  const DrawCounter opening;
  load_language_model(folder_.path() / "model");
  EXPECT_EQ(opening.count(), 0);
}

}  // namespace
}  // namespace seqconv::internal
