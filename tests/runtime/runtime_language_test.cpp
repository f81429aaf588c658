#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "comparison.h"
#include "random_models.h"
#include "support/temporary_folder.h"
#include "variants.h"

// Language models in the runtime against those in LibTorch.
namespace seqconv::internal {
namespace {

using testing::bytes_of;
using testing::expect_near;
using testing::libtorch;
using testing::random_ids;
using testing::random_language_model;
using testing::runtime;
using testing::Variant;

using LanguageModelBackend = std::shared_ptr<const LanguageBackend>;
using Ids = std::vector<int32_t>;

class RandomLanguage {
 public:
  explicit RandomLanguage(const ModelOptions& options)
      : model_(random_language_model(options, folder_.path() / "model.safetensors", 17)) {}

  LanguageModelBackend open(const BackendOpener& opener) const { return opener.language(model_); }

  /// </s> and so many ids of a text, or as many as the positions reach.
  Ids text(size_t length, uint64_t seed = 4) const {
    const int64_t most = model_.options.learned_positions(model_.options.decoder);
    if (most > 0)
      length = std::min(length, static_cast<size_t>(most) - 1);
    Ids ids = random_ids(
        length,
        model_.vocabulary.target,
        seed,
        /*special=*/true);
    for (size_t i = 0; i < ids.size(); i += 9)
      ids[i] = kEndId;  // lines end
    ids.insert(ids.begin(), kEndId);
    return ids;
  }

  /// Pieces of 2 ids and more, without <pad>, which scores as nothing.
  std::vector<Ids> pieces(size_t count) const {
    std::vector<Ids> pieces;
    for (size_t i = 0; i < count; ++i)
      pieces.push_back(text(1 + (i * 13) % 41, 50 + i));
    for (Ids& piece : pieces)
      std::replace(piece.begin(), piece.end(), kPadId, kUnknownId);
    return pieces;
  }

 private:
  testing::TemporaryFolder folder_;
  ModelToRun model_;
};

std::vector<std::span<const int32_t>> spans(const std::vector<Ids>& pieces) {
  return {pieces.begin(), pieces.end()};
}

/// Log-probabilities after each of these chunks of a text.
std::vector<std::vector<float>> read_chunks(
    const LanguageBackend& backend,
    std::span<const int32_t> ids,
    const std::vector<size_t>& chunks) {
  const auto reader = backend.start();
  std::vector<std::vector<float>> found;
  for (const size_t chunk : chunks) {
    const size_t now = std::min(chunk, ids.size());
    if (now == 0)
      break;
    const auto next = reader->read(ids.first(now)).log_probabilities();
    found.emplace_back(next.begin(), next.end());
    ids = ids.subspan(now);
  }
  return found;
}

class RuntimeLanguage : public ::testing::TestWithParam<Variant> {
 protected:
  /// Made once for all tests of a variant.
  static const RandomLanguage& model_of(const Variant& variant) {
    static std::map<std::string, std::unique_ptr<RandomLanguage>> made;
    auto& model = made[variant.name];
    if (model == nullptr)
      model = std::make_unique<RandomLanguage>(variant.options);
    return *model;
  }

  const RandomLanguage& model_ = model_of(GetParam());
};

INSTANTIATE_TEST_SUITE_P(
    Models,
    RuntimeLanguage,
    ::testing::ValuesIn(testing::runtime_language_variants()),
    testing::variant_name);

TEST_P(RuntimeLanguage, ReadsLikeLibTorch) {
  const LanguageModelBackend ours = model_.open(runtime()), theirs = model_.open(libtorch());
  EXPECT_EQ(ours->max_tokens(), theirs->max_tokens());
  const Ids text = model_.text(620);
  for (const auto& chunks : std::vector<std::vector<size_t>>{
           {1, 1, 1, 1}, {2, 1, 1, 1, 5, 1}, {7, 30, 1, 1}, {600, 1, 1, 3, 1}}) {
    const auto found = read_chunks(*ours, text, chunks);
    const auto wanted = read_chunks(*theirs, text, chunks);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(concat("chunk ", i, " after one of ", chunks[0]));
      expect_near<float>(found[i], wanted[i]);
    }
  }
}

TEST_P(RuntimeLanguage, GivesPiecesTheScoresOfLibTorch) {
  const auto pieces = model_.pieces(10);
  const auto found = model_.open(runtime())->score(spans(pieces));
  const auto wanted = model_.open(libtorch())->score(spans(pieces));
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(concat("piece ", i));
    expect_near<float>(found[i], wanted[i]);
  }
}

TEST_P(RuntimeLanguage, ReadsTheSameInAnyChunks) {
  const LanguageModelBackend backend = model_.open(runtime());
  const Ids text = model_.text(140);
  const auto whole = read_chunks(*backend, text, {text.size()});
  for (const auto& chunks : std::vector<std::vector<size_t>>{
           {1, 200}, {3, 16, 1, 1, 200}, std::vector<size_t>(200, 1)}) {
    const auto found = read_chunks(*backend, text, chunks);
    expect_near<float>(found.back(), whole[0], 1e-5);
  }
}

TEST_P(RuntimeLanguage, GivesAPieceTheSameBytesInAnyBatch) {
  const LanguageModelBackend backend = model_.open(runtime());
  const auto pieces = model_.pieces(6);
  const auto together = backend->score(spans(pieces));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto alone = backend->score({pieces[i]});
    EXPECT_TRUE(bytes_of<float>(alone.at(0)) == bytes_of<float>(together.at(i))) << "piece " << i;
  }
}

TEST(RuntimeReader, OutlivesItsBackend) {
  const RandomLanguage model(
      testing::as_language_model(testing::small_options(MixerKind::kDynamicConv)));
  LanguageModelBackend backend = model.open(runtime());
  const auto reader = backend->start();
  backend.reset();
  EXPECT_EQ(reader->read(model.text(3)).log_probabilities().size(), 43u);
}

TEST(RuntimeReader, GoesOnBeyondEveryTableOfPositions) {
  const RandomLanguage model(testing::as_language_model(testing::small_options(MixerKind::kTalk)));
  const Ids text = model.text(6000);
  const std::vector<size_t> chunks = {5990, 1, 1, 1};
  const auto found = read_chunks(*model.open(runtime()), text, chunks);
  const auto wanted = read_chunks(*model.open(libtorch()), text, chunks);
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_near<float>(found.at(i), wanted[i]);
}

TEST(RuntimeThreads, ReadAndScoreLikeOne) {
  for (const auto& [name, kind] : EnumNames<MixerKind>::kNames) {
    SCOPED_TRACE(name);
    const RandomLanguage model(testing::as_language_model(testing::small_options(kind)));
    const LanguageModelBackend backend = model.open(runtime());
    const auto pieces = model.pieces(8);
    const auto run = [&](const Ids& piece) {
      std::string bytes = bytes_of<float>(backend->score({piece}).at(0));
      for (const auto& next : read_chunks(*backend, piece, {1, 5, 1, 50}))
        bytes += bytes_of<float>(next);
      return bytes;
    };
    std::vector<std::string> found(pieces.size());
    {
      std::vector<std::jthread> threads;
      for (size_t first = 0; first < 4; ++first)
        threads.emplace_back([&, first] {
          for (size_t i = first; i < found.size(); i += 4)
            found[i] = run(pieces[i]);
        });
    }
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == run(pieces[i])) << "piece " << i;
  }
}

}  // namespace
}  // namespace seqconv::internal
