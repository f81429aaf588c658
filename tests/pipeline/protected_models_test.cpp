#include <gtest/gtest.h>

#include "libtorch/backend/backend.h"
#include "piece_counts.h"
#include "pipeline/translator.h"
#include "runtime/runtime_backends.h"
#include "support/rounds.h"
#include "support/version_folders.h"

// Protected pieces of a model that has hardly learned anything, run by either backend.
namespace seqconv::internal {
namespace {

TEST(ProtectedModels, KeepOrTellEveryPiece) {
  const auto folder = testing::version_folders() / "protected_pairs_6";
  const TorchBackends torch;
  const RuntimeBackends runtime;
  for (const BackendOpener* const opener :
       {static_cast<const BackendOpener*>(&torch), static_cast<const BackendOpener*>(&runtime)}) {
    const Translator translator(
        open_translation({folder}, *opener), {.search = {.beam = 2, .max_length_b = 12}});
    testing::MadeUpPieces made(2);
    std::vector<TranslationInput> requests;
    for (int i = 0; i < testing::rounds(400); ++i) {
      requests.push_back({{.text = made.line({"dalan", "mira", "zo", "Lurat"}, 1 + i % 6)}});
      if (i % 3 == 0)
        requests.back().sampling = SamplingOptions{.seed = static_cast<uint64_t>(i)};
    }
    const auto results = translator.translate(requests);
    std::map<std::string, int> counts;
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(results[i].status, Status::kOk) << results[i].error;
      testing::expect_kept_or_told(requests[i].text, results[i], counts);
    }
    EXPECT_GT(counts["kept"], 100);
    for (const auto& [what, count] : counts)
      RecordProperty(concat(opener->name(), " ", what), count);
  }
}

}  // namespace
}  // namespace seqconv::internal
