#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include <functional>

#include "base/files.h"
#include "base/safetensors.h"
#include "comparison.h"
#include "libtorch/models/test_language_models.h"
#include "random_models.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// What the runtime refuses: what the backend of LibTorch refuses too.
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::expect_near;
using ::testing::HasSubstr;
using testing::libtorch;
using testing::random_ids;
using testing::random_language_model;
using testing::random_translation_model;
using testing::runtime;
using testing::small_options;

using Sentences = std::vector<std::vector<int32_t>>;

class RuntimeErrors : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "model.safetensors"; }

  ModelToRun translation(const std::function<void(ModelOptions&)>& change = {}) const {
    ModelOptions options = small_options(MixerKind::kDynamicConv);
    if (change)
      change(options);
    return random_translation_model(options, file());
  }

  ModelToRun language(const std::function<void(ModelOptions&)>& change = {}) const {
    ModelOptions options = testing::as_language_model(small_options(MixerKind::kLightConv));
    if (change)
      change(options);
    return random_language_model(options, file());
  }

  /// Tensors of the file of parameters changed, and written again.
  void rewrite(const std::function<void(std::map<std::string, TensorView>&)>& change) const {
    const fs::path copy = folder_.path() / "copy.safetensors";
    fs::copy_file(file(), copy, fs::copy_options::overwrite_existing);
    const SafetensorsReader reader(copy);
    auto tensors = reader.tensors();
    change(tensors);
    write_safetensors(file(), tensors, {});
  }

  testing::TemporaryFolder folder_;
};

/// Learned positions: 9 of the source, 12 of the target.
void learn_positions(ModelOptions& options) {
  options.positions = PositionKind::kLearned;
  options.encoder.max_positions = 9;
  options.decoder.max_positions = 12;
}

void learn_few_positions(ModelOptions& options) {
  options.positions = PositionKind::kLearned;
  options.decoder.max_positions = 12;
}

/// Both backends refuse `work`, the runtime in words that hold `wanted`.
void expect_refused(
    const std::function<void(const BackendOpener&)>& work, const std::string& wanted) {
  error_of([&] { work(libtorch()); });
  EXPECT_THAT(error_of([&] { work(runtime()); }), HasSubstr(wanted));
}

TEST_F(RuntimeErrors, IdsOutsideTheVocabulary) {
  const ModelToRun model =
      translation([](ModelOptions& options) { options.tie = Tying::kDecoder; });
  for (const int32_t id : {-1, 31, 1'000'000})
    expect_refused(
        [&](const BackendOpener& opener) {
          opener.translation({model})->start({{4, 5}, {4, id, 6}});
        },
        std::to_string(id));
  for (const auto& [source, target] : {std::pair{31, 4}, {4, 43}, {-7, 4}, {4, -7}})
    expect_refused(
        [&](const BackendOpener& opener) {
          opener.translation({model})->score({{4, source}}, {{target, 5}});
        },
        std::to_string(source == 4 ? target : source));
}

TEST_F(RuntimeErrors, ALanguageModelsIdsOutsideTheVocabulary) {
  const ModelToRun model = language();
  for (const int32_t id : {-1, 43}) {
    const std::vector<int32_t> ids = {2, id, 7};
    expect_refused(
        [&](const BackendOpener& opener) { opener.language(model)->start()->read(ids); },
        std::to_string(id));
    expect_refused(
        [&](const BackendOpener& opener) { opener.language(model)->score({ids}); },
        std::to_string(id));
  }
  // The last id of a piece is not read, but scored.
  const std::vector<int32_t> last = {2, 7, 43};
  expect_refused([&](const BackendOpener& opener) { opener.language(model)->score({last}); }, "43");
}

TEST_F(RuntimeErrors, NothingToRead) {
  const ModelToRun model = language();
  const std::vector<int32_t> one = {2};
  for (const BackendOpener* opener : {&libtorch(), &runtime()}) {
    EXPECT_EQ(
        error_of([&] { opener->language(model)->start()->read({}); }),
        "a language model must be given a token");
    EXPECT_EQ(
        error_of([&] { opener->language(model)->score({one}); }),
        "a piece of a text needs 2 ids at least, but has 1");
  }
}

TEST_F(RuntimeErrors, OtherNumbersOfSourcesAndTargets) {
  const ModelToRun model = translation();
  expect_refused(
      [&](const BackendOpener& opener) {
        opener.translation({model})->score({{4}, {5}}, {{6}});
      },
      "2 and 1");
  EXPECT_NE(error_of([&] { runtime().translation({model})->score({{4}}, {}); }), "");
}

TEST_F(RuntimeErrors, NoSentencesAtAll) {
  const auto backend = runtime().translation({translation()});
  EXPECT_NE(error_of([&] { backend->start({}); }), "");
  EXPECT_TRUE(backend->score({}, {}).empty());
  EXPECT_TRUE(runtime().language(language())->score({}).empty());
}

TEST_F(RuntimeErrors, SentencesBeyondLearnedPositions) {
  const ModelToRun model = translation(learn_positions);
  const auto backend = runtime().translation({model});
  EXPECT_EQ(backend->limits().source, 9);
  EXPECT_EQ(backend->limits().target, 12);
  EXPECT_EQ(backend->start({{4}})->max_steps(), 12);
  const auto of_length = [](size_t length) { return Sentences{random_ids(length, 31, 1)}; };
  EXPECT_NO_THROW(backend->start(of_length(8)));
  EXPECT_NO_THROW(backend->score(of_length(8), of_length(11)));
  for (const auto& [source, target] : {std::pair{9, 3}, {3, 12}})
    expect_refused(
        [&](const BackendOpener& opener) {
          opener.translation({model})->score(of_length(source), of_length(target));
        },
        source == 9 ? "10" : "13");
  expect_refused(
      [&](const BackendOpener& opener) { opener.translation({model})->start(of_length(9)); }, "10");
}

TEST_F(RuntimeErrors, TextsBeyondLearnedPositions) {
  const ModelToRun model = language(learn_few_positions);
  const auto backend = runtime().language(model);
  EXPECT_EQ(backend->max_tokens(), 12);
  const auto text = random_ids(14, 43, 3);
  const auto first = [&](size_t count) { return std::span<const int32_t>(text).first(count); };
  EXPECT_NO_THROW(backend->start()->read(first(12)));
  EXPECT_NO_THROW(backend->score({first(13)}));
  for (const size_t at_once : {1, 5, 13})
    expect_refused(
        [&](const BackendOpener& opener) {
          const auto reader = opener.language(model)->start();
          for (size_t read = 0; read < 13; read += at_once)
            reader->read(first(13).subspan(read, std::min(at_once, 13 - read)));
        },
        "12");
  expect_refused(
      [&](const BackendOpener& opener) { opener.language(model)->score({first(14)}); }, "12");
}

TEST_F(RuntimeErrors, ParametersThatDoNotFit) {
  const ModelToRun model = translation();
  const std::string name = "decoder.layer1.feed_forward.fc1.weight";
  const auto expect_same = [&](auto change) {
    random_translation_model(model.options, file());
    rewrite(change);
    const std::string wanted = error_of([&] { libtorch().translation({model}); });
    EXPECT_THAT(wanted, HasSubstr("decoder.layer1"));
    EXPECT_EQ(error_of([&] { runtime().translation({model}); }), wanted);
  };
  expect_same([&](auto& tensors) { tensors.erase(name); });
  expect_same(
      [&](auto& tensors) { tensors["decoder.layer1.block.extra"] = tensors.begin()->second; });
  expect_same([&](auto& tensors) {
    auto& shape = tensors.at(name).shape;
    std::swap(shape[0], shape[1]);
  });
  expect_same([&](auto& tensors) { tensors.at(name).shape.push_back(1); });
  expect_same([&](auto& tensors) { tensors.at(name).type = ElementType::kI32; });
  EXPECT_NE(
      error_of([&] {
        ModelToRun missing = model;
        missing.parameters = folder_.path() / "missing.safetensors";
        runtime().translation({missing});
      }),
      "");
}

TEST_F(RuntimeErrors, ParametersThatAreNotFinite) {
  const ModelToRun model = language();
  const std::string name = "decoder.layer0.block_norm.bias";
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    random_language_model(model.options, file());
    at::Tensor value = at::ones({24});
    value[7] = bad;
    rewrite([&](auto& tensors) {
      tensors.at(name).data = {
          static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()};
    });
    const std::string wanted = error_of([&] { libtorch().language(model); });
    EXPECT_THAT(wanted, HasSubstr(name));
    EXPECT_EQ(error_of([&] { runtime().language(model); }), wanted);
  }
}

TEST_F(RuntimeErrors, CutoffsBeyondTheVocabulary) {
  ModelToRun model = language([](ModelOptions& options) {
    options.tie = Tying::kNone;
    options.adaptive.softmax_cutoffs = {10, 20};
    options.adaptive.softmax_factor = 2;
  });
  model.options.adaptive.softmax_cutoffs = {10, 44};
  const std::string wanted = error_of<UsageError>([&] { libtorch().language(model); });
  EXPECT_EQ(error_of<UsageError>([&] { runtime().language(model); }), wanted);
}

TEST_F(RuntimeErrors, VocabulariesOfTwoSizesThatShareAMatrix) {
  ModelToRun model = translation();
  model.vocabulary.target = 44;
  const std::string wanted = error_of<UsageError>([&] { libtorch().translation({model}); });
  EXPECT_EQ(error_of<UsageError>([&] { runtime().translation({model}); }), wanted);
}

TEST_F(RuntimeErrors, ModelsThatCannotVote) {
  const auto vote = [&](const BackendOpener& opener) {
    const ModelToRun one = translation();
    ModelToRun other = random_translation_model(
        [] {
          ModelOptions options = small_options(MixerKind::kTalk);
          options.tie = Tying::kDecoder;
          return options;
        }(),
        folder_.path() / "other.safetensors");
    ModelToRun smaller = one;
    smaller.vocabulary = {40, 40};
    rewrite([](auto& tensors) {
      for (auto& [name, view] : tensors)
        if (view.shape[0] == 43) {
          view.shape[0] = 40;
          view.data = view.data.first(view.data.size() / 43 * 40);
        }
    });
    opener.translation({other, smaller})->start({{4}});
  };
  expect_refused(vote, "43 and 40");
  const ModelToRun model = translation();
  expect_refused(
      [&](const BackendOpener& opener) {
        opener.translation({model, model})->score({{4}}, {{5}});
      },
      "one model scores at a time");
}

TEST_F(RuntimeErrors, WeightsWithoutAFiniteProbability) {
  const ModelToRun model = translation();
  std::vector<at::Tensor> large;
  rewrite([&](auto& tensors) {
    for (auto& [name, view] : tensors) {
      large.push_back(at::full(view.shape, 1e30, at::kFloat));
      view.data = {
          static_cast<const std::byte*>(large.back().const_data_ptr()), large.back().nbytes()};
    }
  });
  for (const BackendOpener* opener : {&libtorch(), &runtime()}) {
    const auto backend = opener->translation({model});
    EXPECT_EQ(
        error_of<NoProbability>([&] {
          testing::run_search(*backend, {{4, 5}}, {"greedy", {.beam = 1, .max_length_b = 3}});
        }),
        "the model gives no token a finite probability: its weights are too large, or damaged");
    EXPECT_FALSE(std::isfinite(backend->score({{4, 5}}, {{6}})[0]));
  }
}

/// Parameters in another type, written anew.
void convert(
    std::map<std::string, TensorView>& tensors,
    at::ScalarType type,
    ElementType element,
    std::vector<at::Tensor>& alive) {
  for (auto& [name, view] : tensors) {
    alive.push_back(at::empty(view.shape, at::kFloat));
    std::memcpy(alive.back().mutable_data_ptr(), view.data.data(), view.data.size());
    alive.push_back(alive.back().to(type));
    view.type = element;
    view.data = {
        static_cast<const std::byte*>(alive.back().const_data_ptr()), alive.back().nbytes()};
  }
}

TEST_F(RuntimeErrors, NoneForParametersOfOtherFloatingTypes) {
  for (const auto& [type, element] :
       {std::pair{at::kHalf, ElementType::kF16},
        {at::kBFloat16, ElementType::kBF16},
        {at::kDouble, ElementType::kF64}}) {
    const ModelToRun model = language();
    std::vector<at::Tensor> alive;
    rewrite([&](auto& tensors) { convert(tensors, type, element, alive); });
    const auto text = random_ids(30, 43, 5);
    expect_near<float>(
        runtime().language(model)->score({text})[0], libtorch().language(model)->score({text})[0]);
  }
}

TEST_F(RuntimeErrors, NoneForParametersAtOddAddresses) {
  const ModelToRun model = language();
  const auto text = random_ids(30, 43, 5);
  const auto wanted = runtime().language(model)->score({text});
  // A header may end in blanks, and so push its tensors off.
  std::string content = read_file(file());
  uint64_t header = 0;
  std::memcpy(&header, content.data(), sizeof header);
  content.insert(sizeof header + header, " ");
  ++header;
  std::memcpy(content.data(), &header, sizeof header);
  write_file_atomically(file(), content);
  EXPECT_EQ(runtime().language(model)->score({text}), wanted);
}

}  // namespace
}  // namespace seqconv::internal
