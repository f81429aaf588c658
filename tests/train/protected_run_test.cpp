#include <gmock/gmock.h>

#include "base/options.h"
#include "libtorch/backend/backend.h"
#include "pipeline/translator.h"
#include "support/made_up_pieces.h"
#include "text/corpus/token_store.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

/// Runs whose texts have protected pieces.
class ProtectedRun : public testing::TinyTask {
 protected:
  ProtectedRun() {
    write_pairs("train", 3000, 1, /*reversed=*/true);
    write_pairs("valid", 50, 2, /*reversed=*/true);
    config_.text.protect = {PieceKind::kPlaceholders, PieceKind::kUrls, PieceKind::kEmails};
  }

  /// All ids of the training text of a run.
  std::vector<int32_t> training_ids(const std::string& run) const {
    std::vector<int32_t> ids;
    for (const char* const side : {"source", "target"}) {
      const TokenStore store(
          path(run) / "training/data" / (std::string("train.") + side + ".tokens"));
      for (int64_t i = 0; i < store.size(); ++i)
        ids.insert(ids.end(), store.tokens(i).begin(), store.tokens(i).end());
    }
    return ids;
  }
};

/// The training text has no piece: the model has practised with its own words.
TEST_F(ProtectedRun, LearnsToMovePiecesThatNoTextHas) {
  config_.model = testing::tiny_model(MixerKind::kDynamicConv);
  config_.model.dim = 64;
  config_.model.ffn_dim = 128;
  config_.batching.max_tokens = 256;
  config_.training.max_updates = 400;
  config_.training.max_epochs = 0;
  config_.training.label_smoothing = 0;
  config_.schedule.learning_rate = 5e-3;
  config_.schedule.kind = ScheduleKind::kCosine;
  config_.schedule.warmup_updates = 50;
  config_.schedule.period = config_.training.max_updates - 50;
  train_model(request("run"));
  TranslatorOptions options;
  options.search = config_.decoding;
  const Translator translator(open_translation({path("run")}, TorchBackends()), options);
  testing::MadeUpPieces made(3);
  std::vector<TranslationInput> requests;
  std::vector<std::string> wanted;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::string> words;
    for (int64_t digits = 2 + made.below(3); digits > 0; --digits)
      words.push_back(std::to_string(made.below(10)));
    for (int64_t pieces = 1 + made.below(2); pieces > 0; --pieces)
      words.insert(
          words.begin() + made.below(std::ssize(words) + 1),
          made.piece(static_cast<int>(made.below(testing::kMadeUpKinds - 1))));
    std::string line, reversed;
    for (const std::string& word : words) {
      line += (line.empty() ? "" : " ") + word;
      reversed = word + (reversed.empty() ? "" : " ") + reversed;
    }
    requests.push_back({{.text = line}});
    wanted.push_back(reversed);
  }
  int unrepaired = 0, right = 0;
  const auto results = translator.translate(requests);
  for (size_t i = 0; i < results.size(); ++i) {
    unrepaired += results[i].notes.empty();
    right += results[i].translations.at(0).text == wanted[i];
  }
  std::cout << "without repair: " << unrepaired << ", right: " << right << '\n';
  EXPECT_GE(unrepaired, 80);
  EXPECT_GE(right, 60);
}

TEST_F(ProtectedRun, PracticesAlikeWhateverTheSeed) {
  config_.training.max_updates = 1;
  train_model(request("one"));
  config_.training.seed = 9;
  train_model(request("other"));
  EXPECT_EQ(training_ids("one"), training_ids("other"));
  const Json text = parse_json(read_file(path("one") / "config.json"), "config.json").at("text");
  EXPECT_EQ(text.at("protect"), Json({"placeholders", "urls", "emails"}));
}

}  // namespace
}  // namespace seqconv::internal
