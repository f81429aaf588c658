#include <gmock/gmock.h>

#include <sstream>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/fairseq_files.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The lines of a file as ids of a dictionary, each with </s>.
testing::Sentences ids_of(const std::filesystem::path& file, const Vocabulary& vocabulary) {
  testing::Sentences sentences;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    sentences.emplace_back();
    for (std::string word; words >> word;)
      sentences.back().push_back(vocabulary.id(word));
    sentences.back().push_back(kEndId);
  }
  return sentences;
}

/// Runs on text and on the binarised data made of it.
class BinarisedRun : public testing::TinyTask {
 protected:
  BinarisedRun() {
    config_.text.source_dictionary = folder_.write("dict.txt", kDictionary);
    config_.model.dropout = 0.1;
    config_.training.validate_every = 6;
    // A line that is too long and an empty one.
    std::string longest;
    for (int i = 0; i < 70; ++i)
      longest += "1 ";
    for (const char* side : {"train.source", "train.target"}) {
      const std::string lines = read_file(path(side));
      folder_.write(side, lines + longest + "\n" + "\n" + lines);
    }
  }

  Vocabulary dictionary() const { return Vocabulary::load(path("dict.txt")); }

  /// Replaces a list of files by data made of them, mapped or cached.
  void binarise(std::vector<std::string>& files, bool mapped) {
    for (std::string& file : files) {
      const auto sentences = ids_of(file, dictionary());
      const auto bytes = mapped ? testing::mapped_bytes<uint16_t>(sentences, 8)
                                : testing::cached_bytes<int32_t>(sentences, 4);
      const std::string name =
          std::filesystem::path(file).filename().string() + (mapped ? ".m" : ".c");
      file = bytes.write(folder_, name);
    }
  }

  void binarise_all(bool mapped) {
    for (auto* files : testing::file_lists(config_.data))
      binarise(*files, mapped);
  }

  void expect_same(const std::string& a, const std::string& b) const {
    for (const char* file : {"model.safetensors", "training/state.safetensors"})
      EXPECT_TRUE(testing::tensors_of(path(a) / file) == testing::tensors_of(path(b) / file))
          << b << ' ' << file;
    for (const char* kind : {"train", "validation"}) {
      const auto wanted = records(a, kind);
      const auto found = records(b, kind);
      ASSERT_EQ(found.size(), wanted.size()) << b;
      EXPECT_GT(wanted.size(), 0) << b;
      for (size_t i = 0; i < wanted.size(); ++i)
        for (const char* field : {"loss_base2", "nll_base2", "bleu"})
          EXPECT_EQ(found[i].value(field, Json()), wanted[i].value(field, Json()))
              << b << ' ' << kind << ' ' << field;
    }
  }

  void expect_same_file(const std::string& a, const std::string& b, const std::string& file) const {
    EXPECT_EQ(
        read_file(path(a) / "training" / "data" / file),
        read_file(path(b) / "training" / "data" / file))
        << b;
  }

  void make_language_model() {
    const TrainConfig translation = config_;
    config_ = TrainConfig::defaults(Task::kLanguageModel);
    config_.training = translation.training;
    config_.training.label_smoothing = 0;
    config_.schedule = translation.schedule;
    config_.batching = translation.batching;
    config_.text.subword = Subword::kNone;
    config_.text.dictionary = path("dict.txt");
    config_.model.dim = 32;
    config_.model.ffn_dim = 64;
    config_.model.max_positions = 64;
    config_.model.decoder = testing::tiny_model(MixerKind::kDynamicConv).decoder;
    config_.data.stream.block_tokens = 12;
    config_.data.train = {path("train.source"), path("train.target")};
    config_.data.valid = {path("valid.source")};
  }

  static constexpr const char* kDictionary =
      "1 9\n0 8\n3 7\n2 6\n5 5\n4 5\n7 5\n6 5\n9 5\n8 5\nmadeupword0000 0\n"
      "madeupword0001 0\n";
};

TEST_F(BinarisedRun, TranslationIsTheSameToTheBit) {
  config_.training.validate_bleu = true;
  train_model(request("text"));
  const DataOptions text = config_.data;
  for (const bool mapped : {true, false}) {
    config_.data = text;
    binarise_all(mapped);
    const std::string name = mapped ? "mapped" : "cached";
    train_model(request(name));
    expect_same("text", name);
    expect_same_file("text", name, "train.source.tokens");
    expect_same_file("text", name, "valid.target.tokens");
    const Json config = Json::parse(read_file(path(name) / "config.json"));
    const Json& samples = config.at("text").at("target").at("samples");
    ASSERT_EQ(samples.size(), 5) << name;
    EXPECT_FALSE(samples[0].at("line").get<std::string>().empty());
    EXPECT_NO_THROW(load_model(path(name)));
  }
}

TEST_F(BinarisedRun, LanguageModelsAreTheSameToTheBit) {
  make_language_model();
  const DataOptions text = config_.data;
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    config_.data = text;
    config_.data.stream.samples = kind;
    const std::string name(enum_name(kind));
    train_model(request(name));
    binarise_all(kind == SampleKind::kBlocks);
    train_model(request(name + "-ids"));
    expect_same(name, name + "-ids");
    expect_same_file(name, name + "-ids", "train.tokens");
    EXPECT_FALSE(load_language_model(path(name + "-ids")).text.samples.empty());
  }
}

TEST_F(BinarisedRun, ResumesAndKnowsItsFiles) {
  binarise_all(/*mapped=*/true);
  train_model(request("whole"));
  config_.training.max_updates = 6;
  train_model(request("pieces"));
  config_.training.max_updates = 12;
  TrainRequest again = request("pieces");
  again.resume = true;
  train_model(again);
  EXPECT_TRUE(
      testing::tensors_of(path("whole") / "model.safetensors") ==
      testing::tensors_of(path("pieces") / "model.safetensors"));
  // The index alone has changed.
  again.config.training.max_updates = 14;
  const auto index = path("train.target.m.idx");
  std::string bytes = read_file(index);
  bytes.back() ^= 1;
  folder_.write("train.target.m.idx", bytes);
  EXPECT_THAT(
      testing::error_of([&] { train_model(again); }),
      HasSubstr("content of data.train_target is not what the run began with"));
}

TEST_F(BinarisedRun, NothingCanBeLearnedFromIds) {
  binarise_all(/*mapped=*/true);
  const auto error = [&] {
    return testing::error_of<UsageError>([&] { train_model(request("run")); });
  };
  config_.text.source_dictionary.clear();
  EXPECT_THAT(
      error(),
      HasSubstr("from whose ids nothing can be learned: text.source_dictionary must name the file "
                "that they were made with"));
  config_.text.joined = false;
  config_.model.tie = Tying::kNone;
  config_.text.source_dictionary = path("dict.txt");
  EXPECT_THAT(error(), HasSubstr("learned: text.target_dictionary must"));
  config_.text.subword = Subword::kBpe;
  EXPECT_THAT(error(), HasSubstr("learned: text.bpe_codes must name"));
  config_.text.subword = Subword::kSentencePiece;
  EXPECT_THAT(error(), HasSubstr("text.sentencepiece_model must name"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  config_.data.train_target = {path("train.target")};
  EXPECT_THAT(error(), HasSubstr("data.train_source and data.train_target must both be"));
}

TEST_F(BinarisedRun, IdsOfAnotherDictionaryNameTheSentence) {
  config_.data.valid_source = {
      testing::mapped_bytes<uint16_t>({{4, 2}, {16, 2}}, 8).write(folder_, "other")};
  config_.data.valid_target = config_.data.valid_source;
  EXPECT_THAT(
      testing::error_of([&] { train_model(request("run")); }),
      HasSubstr("other.bin: wrong dictionary for this data: sentence 2 holds the id 16, but the "
                "dictionary has ids from 0 to 15"));
}

TEST_F(BinarisedRun, ALanguageModelKnowsUnknownFromIds) {
  make_language_model();
  binarise_all(/*mapped=*/true);
  const std::string unknown =
      testing::mapped_bytes<uint16_t>({{4, 2}, {5, 3, 2}}, 8).write(folder_, "unknown");
  config_.data.valid = {unknown};
  EXPECT_THAT(
      testing::error_of([&] { train_model(request("run")); }),
      HasSubstr("unknown.bin: sentence 2: the symbol '<unk>' is not in the model's vocabulary"));
  config_.data.train.push_back(unknown);
  train_model(request("knows"));
  EXPECT_TRUE(load_language_model(path("knows")).text.knows_unknown);
}

}  // namespace
}  // namespace seqconv::internal
