#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "comparison.h"
#include "random_models.h"
#include "search/sampled_search.h"
#include "search/step_rows.h"
#include "support/temporary_folder.h"
#include "variants.h"

// Translation models in the runtime: the numbers of LibTorch, and its own to
// the bit whatever is beside a sentence.
namespace seqconv::internal {
namespace {

using testing::bytes_of;
using testing::expect_near;
using testing::libtorch;
using testing::PairedDecoder;
using testing::random_sentences;
using testing::random_translation_model;
using testing::run_search;
using testing::runtime;
using testing::search_cases;
using testing::SearchCase;
using testing::Variant;

using Sentences = std::vector<std::vector<int32_t>>;
using Backend = std::shared_ptr<const TranslationBackend>;

/// Backends of random models, and sentences that they can read.
class RandomTranslation {
 public:
  explicit RandomTranslation(const std::vector<ModelOptions>& models) {
    for (const ModelOptions& options : models)
      models_.push_back(random_translation_model(
          options, folder_.path() / concat(models_.size(), ".safetensors"), 11 + models_.size()));
  }

  Backend open(const BackendOpener& opener) const { return opener.translation(models_); }

  Sentences sources(size_t count, uint64_t seed = 5) const {
    return sentences(
        count,
        longest([](const ModelOptions& model) { return model.learned_positions(model.encoder); }),
        models_[0].vocabulary.source,
        seed);
  }
  /// Without <pad>, which scores as nothing.
  Sentences targets(size_t count, uint64_t seed = 6) const {
    Sentences targets = sentences(
        count,
        longest([](const ModelOptions& model) { return model.learned_positions(model.decoder); }),
        models_[0].vocabulary.target,
        seed);
    for (auto& target : targets)
      std::replace(target.begin(), target.end(), kPadId, kUnknownId);
    return targets;
  }

 private:
  template <class Limit>
  size_t longest(const Limit& limit) const {
    size_t longest = 40;
    for (const ModelToRun& model : models_)
      if (const int64_t most = limit(model.options); most > 0)
        longest = std::min(longest, static_cast<size_t>(most) - 1);
    return longest;
  }
  static Sentences sentences(size_t count, size_t longest, int64_t vocabulary, uint64_t seed) {
    if (count == 1)
      return {testing::random_ids(17, vocabulary, seed)};
    return random_sentences(count, longest, vocabulary, seed);
  }

  testing::TemporaryFolder folder_;
  std::vector<ModelToRun> models_;
};

void expect_same_searches(const RandomTranslation& model) {
  const Backend ours = model.open(runtime()), theirs = model.open(libtorch());
  EXPECT_EQ(ours->limits().source, theirs->limits().source);
  EXPECT_EQ(ours->limits().target, theirs->limits().target);
  for (const SearchCase& of : search_cases()) {
    SCOPED_TRACE(of.name);
    const Sentences sources = model.sources(of.sentences);
    PairedDecoder decoder(*ours, *theirs, sources);
    run_search(decoder, sources, of);
  }
}

/// Every sentence by itself and with others, in two orders.
void expect_same_bytes(const RandomTranslation& model) {
  const Backend backend = model.open(runtime());
  const SearchCase of = search_cases().back();
  Sentences sources = model.sources(6);
  std::vector<std::string> alone;
  for (const auto& source : sources)
    alone.push_back(bytes_of(run_search(*backend, {source}, of)[0]));
  const auto forwards = run_search(*backend, sources, of);
  std::reverse(sources.begin(), sources.end());
  const auto backwards = run_search(*backend, sources, of);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(bytes_of(forwards[i]) == alone[i]) << "sentence " << i;
    EXPECT_TRUE(bytes_of(backwards[alone.size() - 1 - i]) == alone[i])
        << "sentence " << i << " of the other order";
  }
}

class RuntimeTranslation : public ::testing::TestWithParam<Variant> {
 protected:
  /// Made once for all tests of a variant.
  static const RandomTranslation& model_of(const Variant& variant) {
    static std::map<std::string, std::unique_ptr<RandomTranslation>> made;
    auto& model = made[variant.name];
    if (model == nullptr)
      model = std::make_unique<RandomTranslation>(std::vector{variant.options});
    return *model;
  }

  const RandomTranslation& model_ = model_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(
    Models,
    RuntimeTranslation,
    ::testing::ValuesIn(testing::runtime_variants()),
    testing::variant_name);

TEST_P(RuntimeTranslation, MakesTheStepsOfLibTorch) {
  expect_same_searches(model_);
}

TEST_P(RuntimeTranslation, GivesPairsTheScoresOfLibTorch) {
  const Sentences sources = model_.sources(12), targets = model_.targets(12);
  expect_near<double>(
      model_.open(runtime())->score(sources, targets),
      model_.open(libtorch())->score(sources, targets));
}

TEST_P(RuntimeTranslation, LooksAtWhatLibTorchLooksAt) {
  const Sentences targets = model_.targets(12);
  const Backend backend = model_.open(runtime()), other = model_.open(libtorch());
  for (const std::vector<int32_t>& source : model_.sources(6)) {
    const auto found = backend->source_shares(source, targets);
    const auto wanted = other->source_shares(source, targets);
    ASSERT_EQ(found.size(), targets.size());
    ASSERT_EQ(wanted.size(), targets.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].source_tokens, std::ssize(source) + 1);
      ASSERT_EQ(found[i].target_tokens(), std::ssize(targets[i]) + 1);
      expect_near<float>(found[i].values, wanted[i].values);
      for (size_t t = 0; t <= targets[i].size(); ++t) {
        const auto row = std::span(found[i].values).subspan(t * (source.size() + 1));
        EXPECT_NEAR(
            std::accumulate(row.begin(), row.begin() + std::ssize(source) + 1, 0.0), 1, 1e-5);
      }
      EXPECT_EQ(
          bytes_of<float>(backend->source_shares(source, {targets[i]})[0].values),
          bytes_of<float>(found[i].values));
    }
  }
}

TEST_P(RuntimeTranslation, GivesASentenceTheSameBytesInAnyBatch) {
  expect_same_bytes(model_);
}

TEST_P(RuntimeTranslation, GivesAPairTheSameBytesInAnyBatch) {
  const Sentences sources = model_.sources(7), targets = model_.targets(7);
  const Backend backend = model_.open(runtime());
  const std::vector<double> together = backend->score(sources, targets);
  for (size_t i = 0; i < sources.size(); ++i)
    EXPECT_EQ(backend->score({sources[i]}, {targets[i]})[0], together[i]);
}

ModelOptions options_of(MixerKind kind) {
  return testing::small_options(kind);
}

TEST(RuntimeSearch, IsTheSameInLargeBatches) {
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    SCOPED_TRACE(name);
    const RandomTranslation model({options_of(kind)});
    const Sentences sources = model.sources(32);
    PairedDecoder decoder(*model.open(runtime()), *model.open(libtorch()), sources);
    run_search(decoder, sources, search_cases().back());
  }
}

TEST(RuntimeSearch, DrawsTheTranslationsOfLibTorch) {
  const DecodingOptions options = {.n_best = 3, .max_length_b = 8};
  const SamplingOptions sampling = {.temperature = 0.8, .top_p = 0.95};
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    SCOPED_TRACE(name);
    const RandomTranslation model({options_of(kind)});
    const auto draw = [&](StepDecoder& decoder, const Sentences& sources) {
      std::vector<SampledInput> inputs;
      for (const auto& source : sources)
        inputs.push_back({{std::ssize(source) + 1, {}}, source.size() + 3});
      return sampled_search(decoder, inputs, options, sampling);
    };
    const Backend ours = model.open(runtime());
    const Sentences sources = model.sources(8);
    PairedDecoder decoder(*ours, *model.open(libtorch()), sources);
    const auto found = draw(decoder, sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto alone = draw(*ours->start({sources[i]}), {sources[i]});
      EXPECT_TRUE(bytes_of(alone[0]) == bytes_of(found[i]));
    }
  }
}

TEST(RuntimeSearch, GivesOutTheProbabilitiesOfAStep) {
  const RandomTranslation model({options_of(MixerKind::kDynamicConv)});
  const auto decoder = model.open(runtime())->start(model.sources(3));
  const std::vector<int32_t> rows = {2, 0, 1}, ends(3, kEndId);
  const auto step = testing::advance_with_rows(*decoder, rows, ends, {.unknown_penalty = 9}, 2);
  ASSERT_EQ(step.log_probabilities.size(), rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto& all = step.log_probabilities[row];
    ASSERT_EQ(std::ssize(all), decoder->vocabulary_size());
    double sum = 0;
    for (const float number : all)
      sum += std::exp(static_cast<double>(number));
    EXPECT_NEAR(sum, 1, 1e-5);
    for (const Candidate& candidate : step.best[row]) {
      const float penalty = candidate.token == kUnknownId ? 9 : 0;
      EXPECT_EQ(all[static_cast<size_t>(candidate.token)] - penalty, candidate.score);
    }
  }
}

TEST(RuntimeSearch, TiesMayBeAllThatABeamHolds) {
  // Wider than the vocabulary: every candidate of every row is wanted.
  const RandomTranslation model({options_of(MixerKind::kDynamicConv)});
  const SearchCase of = {"wide", {.beam = 60, .n_best = 60, .max_length_b = 3}, 3};
  const Sentences sources = model.sources(of.sentences);
  PairedDecoder decoder(*model.open(runtime()), *model.open(libtorch()), sources);
  run_search(decoder, sources, of);
}

TEST(RuntimeSearch, ScoresWhatItFinds) {
  const RandomTranslation model({options_of(MixerKind::kTalk)});
  const Backend backend = model.open(runtime());
  const SearchCase of = {"beam", {.beam = 4, .max_length_b = 20}, 8};
  const Sentences sources = model.sources(of.sentences);
  const auto found = run_search(*backend, sources, of);
  Sentences targets;
  std::vector<double> wanted;
  for (const auto& hypotheses : found) {
    targets.push_back(hypotheses[0].tokens);
    targets.back().pop_back();
    wanted.push_back(hypotheses[0].log_probability);
  }
  expect_near<double>(backend->score(sources, targets), wanted);
}

TEST(RuntimeSearch, ModelsThatVoteLookInTheMean) {
  const ModelOptions options = options_of(MixerKind::kLightConv);
  const RandomTranslation pair({options, options}), first({options});
  const Sentences sources = pair.sources(5), targets = pair.targets(5);
  const Backend ours = pair.open(runtime()), one = first.open(runtime());
  const Backend by_libtorch = pair.open(libtorch());
  for (const std::vector<int32_t>& source : sources) {
    const auto mean = ours->source_shares(source, targets);
    const auto of_one = one->source_shares(source, targets);
    const auto wanted = by_libtorch->source_shares(source, targets);
    for (size_t i = 0; i < targets.size(); ++i) {
      expect_near<float>(mean[i].values, wanted[i].values);
      EXPECT_EQ(mean[i].values == of_one[i].values, source.empty());  // then all is </s>'s
    }
  }
}

TEST(RuntimeSearch, NoTranslationsLookAtNothing) {
  const RandomTranslation model({options_of(MixerKind::kTalk)});
  for (const Backend& backend : {model.open(runtime()), model.open(libtorch())})
    EXPECT_TRUE(backend->source_shares({4, 5}, {}).empty());
}

TEST(RuntimeSearch, LooksOfUnknownWordsAreRefused) {
  const RandomTranslation model({options_of(MixerKind::kTalk)});
  const Backend backend = model.open(runtime());
  EXPECT_THROW(backend->source_shares({1'000'000}, model.targets(3)), Error);
  EXPECT_THROW(backend->source_shares({4, 5}, {{4}, {1'000'000}}), Error);
}

TEST(RuntimeSearch, ADecoderOutlivesItsBackend) {
  const RandomTranslation model({options_of(MixerKind::kAverageAttention)});
  const Sentences sources = model.sources(4);
  Backend backend = model.open(runtime());
  const auto decoder = backend->start(sources);
  backend.reset();
  EXPECT_EQ(decoder->sentences(), 4);
  const auto first =
      decoder->advance(std::vector<int32_t>{0, 1, 2, 3}, std::vector<int32_t>(4, kEndId), {}, 3);
  EXPECT_EQ(first.size(), 4u);
}

TEST(RuntimeSearch, RowsMayBeDroppedRepeatedAndReordered) {
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    SCOPED_TRACE(name);
    const RandomTranslation model({options_of(kind)});
    const Sentences sources = model.sources(4);
    PairedDecoder decoder(*model.open(runtime()), *model.open(libtorch()), sources);
    const auto advance = [&](const std::vector<int32_t>& parents,
                             const std::vector<int32_t>& tokens) {
      decoder.advance(parents, tokens, {}, 60);
    };
    advance({0, 1, 2, 3}, {2, 2, 2, 2});
    advance({3, 3, 0, 2, 2}, {5, 6, 7, 8, 9});
    advance({4, 0, 0, 1}, {10, 11, 12, 3});
    advance({3}, {13});
    advance({0, 0, 0}, {14, 15, 15});
  }
}

TEST(RuntimeEnsemble, VotesLikeLibTorch) {
  using enum MixerKind;
  ModelOptions learned = options_of(kTalk);
  learned.positions = PositionKind::kLearned;
  learned.max_positions = 30;
  learned.norm = NormPlacement::kPre;
  for (const auto& other : {options_of(kDynamicConv), options_of(kSelfAttention), learned}) {
    const RandomTranslation models({options_of(kDynamicConv), other});
    expect_same_searches(models);
    expect_same_bytes(models);
  }
}

TEST(RuntimeEnsemble, HasAdaptiveSoftmaxesThatTakeNoLists) {
  std::vector<Variant> variants;
  testing::add_adaptive(variants);
  ModelOptions plain = variants[0].options;
  plain.adaptive = {};
  const RandomTranslation models({variants[0].options, plain, variants[1].options});
  expect_same_searches(models);
  const Backend backend = models.open(runtime());
  EXPECT_FALSE(backend->limits_words());
  EXPECT_THROW(backend->start_within({{4, 5}}, {{2, 4}}), Error);
}

TEST(RuntimeThreads, GiveTheBytesOfOne) {
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    SCOPED_TRACE(name);
    const RandomTranslation model({options_of(kind)});
    const Backend backend = model.open(runtime());
    const SearchCase of = search_cases().back();
    const Sentences sources = model.sources(8), targets = model.targets(8);
    const auto run = [&](size_t i) {
      return bytes_of(run_search(*backend, {sources[i]}, of)[0]) +
          bytes_of<double>(backend->score({sources[i]}, {targets[i]}));
    };
    std::vector<std::string> found(sources.size());
    {
      std::vector<std::jthread> threads;
      for (size_t first = 0; first < 4; ++first)
        threads.emplace_back([&, first] {
          for (size_t i = first; i < found.size(); i += 4)
            found[i] = run(i);
        });
    }
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == run(i)) << "sentence " << i;
  }
}

}  // namespace
}  // namespace seqconv::internal
