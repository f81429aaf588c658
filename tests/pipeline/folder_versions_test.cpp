#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "base/characters.h"
#include "base/options.h"
#include "libtorch/backend/backend.h"
#include "pipeline/generator.h"
#include "pipeline/perplexity.h"
#include "pipeline/scorer.h"
#include "pipeline/translator.h"
#include "runtime/runtime_backends.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/version_folders.h"
#include "text/corpus/pair_pieces.h"
#include "text/corpus/token_store.h"
#include "text/vocabulary.h"

// Whoever turns these red has changed what old folders mean: raise
// kModelFormatVersion, and read or refuse the old ones (docs/model_folder.md).
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::VersionFolder;

using Ids = std::vector<int32_t>;

// Float32 of other processors differs by less, other semantics by far more.
double tolerance(const VersionFolder& folder) {
  // Unless an input of int8 is rounded to its neighbour.
  return folder.is_int8() ? 1e-2 : 1e-4;
}

const BackendOpener& backends(const VersionFolder& folder) {
  static const TorchBackends kTorch;
  static const RuntimeBackends kRuntime;
  if (folder.is_int8())
    return kRuntime;
  return kTorch;
}

/// All ids of a token store, one sequence behind the other.
Ids stored(const VersionFolder& folder, const std::string& name) {
  const TokenStore store(folder.path / "training" / "data" / name);
  Ids ids;
  for (int64_t i = 0; i < store.size(); ++i)
    ids.insert(ids.end(), store.tokens(i).begin(), store.tokens(i).end());
  return ids;
}

/// `most`: tokens that are left of a line; 0: all.
Ids encoded(const TextPipeline& text, const std::string& name, int64_t most = 0) {
  Ids all;
  for (const std::string& line : testing::version_text(name)) {
    Ids ids = text.encode(line);
    cut_tokens(ids, most);
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

/// A stream begins, and each of its lines ends, with id 2; where lines are
/// samples, each begins with one as well.
Ids encoded_stream(const LanguageDescription& model, const std::string& name) {
  const bool lines = model.stream.samples == SampleKind::kLines;
  Ids all;
  if (!lines)
    all.push_back(2);
  for (const std::string& line : testing::version_text(name)) {
    if (lines)
      all.push_back(2);
    const Ids ids = model.text.text->encode(line);
    all.insert(all.end(), ids.begin(), ids.end());
    all.push_back(2);
  }
  return all;
}

double bits_of(const LanguageSystem& model, const std::string& line) {
  PerplexityMeter meter(model, {});
  meter.add_line(line, "line");
  return meter.finish().bits;
}

TEST(FolderVersions, EveryVersionHasAFolder) {
  std::set<int64_t> found;
  for (const VersionFolder& folder : testing::all_version_folders())
    found.insert(folder.config.at("format_version").get<int64_t>());
  std::vector<int64_t> wanted(kModelFormatVersion);
  std::iota(wanted.begin(), wanted.end(), 1);
  EXPECT_THAT(found, ::testing::ElementsAreArray(wanted));
}

/// Pairs with protected pieces, which those to train on practise.
void expect_pairs_stored(
    const VersionFolder& folder, const std::string& part, const TranslationText& text) {
  const std::vector<std::string> sources = testing::version_text(part + ".source");
  const std::vector<std::string> targets = testing::version_text(part + ".target");
  Ids source, target;
  for (size_t i = 0; i < sources.size(); ++i) {
    const PairInSlots pair = find_pair_pieces(
        sources[i],
        targets.at(i),
        text.options.protect,
        part == "train" ? Practice::kSome : Practice::kNone);
    const auto add = [](const TextPipeline& side, const LineInSlots& line, Ids& all) {
      const Ids ids = side.encode_pieces(line.line, line.pieces);
      all.insert(all.end(), ids.begin(), ids.end());
    };
    add(*text.source, pair.source, source);
    add(*text.target, pair.target, target);
  }
  EXPECT_EQ(source, stored(folder, part + ".source.tokens"));
  EXPECT_EQ(target, stored(folder, part + ".target.tokens"));
}

TEST(FolderVersions, TextGivesTheIdsOfThatTime) {
  for (const VersionFolder& folder : testing::all_version_folders()) {
    SCOPED_TRACE(folder.path);
    for (const std::string part : {"train", "valid"}) {
      if (!folder.translates()) {
        EXPECT_EQ(
            encoded_stream(read_language_description(folder.path), part + ".source"),
            stored(folder, part + ".tokens"));
        continue;
      }
      const TranslationText text = read_translation_description(folder.path).text;
      if (!text.options.protect.empty()) {
        expect_pairs_stored(folder, part, text);
        continue;
      }
      EXPECT_EQ(
          encoded(*text.source, part + ".source", text.max_source_tokens),
          stored(folder, part + ".source.tokens"));
      EXPECT_EQ(encoded(*text.target, part + ".target"), stored(folder, part + ".target.tokens"));
    }
  }
}

TEST(FolderVersions, TranslationsAreThoseOfThatTime) {
  for (const VersionFolder& folder : testing::all_version_folders()) {
    if (!folder.translates())
      continue;
    SCOPED_TRACE(folder.path);
    const TranslationSystem model = open_translation({folder.path}, backends(folder));
    std::vector<TranslationInput> requests;
    for (const std::string& line : testing::version_text("valid.source"))
      requests.push_back({{.text = line}});
    TranslatorOptions options;
    options.search = model.decoding;
    options.search.n_best = 2;
    const auto found = Translator(model, options).translate(requests);
    const Json& wanted = folder.expected.at("translations");
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<Translation>& own = found[i].translations;
      ASSERT_EQ(own.size(), wanted[i].size());
      for (size_t n = 0; n < own.size(); ++n) {
        const Json& other = wanted[i][n];
        EXPECT_EQ(own[n].text, other.at("text").get<std::string>());
        const auto tokens = other.at("tokens").get<std::string>();
        EXPECT_THAT(own[n].tokens, ::testing::ElementsAreArray(split_words(tokens)));
        EXPECT_NEAR(own[n].score, other.at("score").get<double>(), tolerance(folder));
      }
    }
  }
}

TEST(FolderVersions, GivenPairsAreAsProbableAsAtThatTime) {
  for (const VersionFolder& folder : testing::all_version_folders()) {
    if (!folder.translates())
      continue;
    SCOPED_TRACE(folder.path);
    const TranslationSystem model = open_translation({folder.path}, backends(folder));
    std::vector<Ids> sources;
    std::vector<Ids> targets;
    for (const std::string& line : testing::version_text("valid.source")) {
      sources.push_back(model.text.source->encode(line));
      cut_tokens(sources.back(), model.text.max_source_tokens);
    }
    for (const std::string& line : testing::version_text("valid.target"))
      targets.push_back(model.text.target->encode(line));
    const auto found = score_pairs(*model.backend, sources, targets, 100);
    const auto wanted = folder.expected.at("log_probabilities").get<std::vector<double>>();
    EXPECT_THAT(found, ::testing::Pointwise(::testing::DoubleNear(tolerance(folder)), wanted));
  }
}

TEST(FolderVersions, LanguageModelsMeasureAndWriteAsAtThatTime) {
  for (const VersionFolder& folder : testing::all_version_folders()) {
    if (folder.translates())
      continue;
    SCOPED_TRACE(folder.path);
    const LanguageSystem model = open_language_model(folder.path, backends(folder));
    const auto lines = testing::version_text("valid.source");
    std::vector<double> bits;
    for (const std::string& line : lines)
      bits.push_back(bits_of(model, line));
    EXPECT_THAT(
        bits,
        ::testing::Pointwise(
            ::testing::DoubleNear(tolerance(folder)),
            folder.expected.at("bits").get<std::vector<double>>()));
    std::string text;
    generate_text(
        model,
        lines.front(),
        {.length = 40, .sampling = {.seed = 5}},
        [&](const std::string& more) { text += more; });
    // The program ends what it writes with a line break.
    EXPECT_EQ(
        text + (text.ends_with('\n') ? "" : "\n"),
        folder.expected.at("generated").get<std::string>());
  }
}

TEST(FolderVersions, FoldersAreWrittenInTheFormTheyWereIn) {
  const testing::TemporaryFolder place;
  for (const VersionFolder& folder : testing::all_version_folders()) {
    if (folder.is_int8())
      continue;  // quantize_model() writes these
    SCOPED_TRACE(folder.path);
    const fs::path copy = place.path() / folder.path.filename();
    const auto write_copy = [&](auto description) {
      description.folder = copy;
      write_description(description);
    };
    if (folder.translates())
      write_copy(read_translation_description(folder.path));
    else
      write_copy(read_language_description(folder.path));
    const Json config = testing::read_json_file(copy / "config.json");
    for (const char* key : {"format", "format_version", "task", "architecture", "text"})
      EXPECT_EQ(config.at(key), folder.config.at(key)) << key;
    for (const auto& entry : fs::directory_iterator(copy)) {
      const fs::path name = entry.path().filename();
      if (name != "config.json") {
        EXPECT_EQ(read_file(entry.path()), read_file(folder.path / name));
      }
    }
  }
}

/// A folder whose config.json can be changed.
class FolderVersionErrors : public ::testing::Test {
 protected:
  FolderVersionErrors() { fs::copy(testing::version_folders() / "translation_2", folder()); }
  fs::path folder() const { return place_.path() / "model"; }

  /// What is said about the folder when one text of config.json is another.
  std::string error_with(const std::string& from, const std::string& to) const {
    const fs::path file = folder() / "config.json";
    const std::string good = read_file(file);
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    write_file_atomically(file, bad);
    const std::string error = testing::error_of([&] { load_model(folder()); });
    // Verbs that need no more than the files say the same.
    EXPECT_EQ(testing::error_of([&] { read_translation_description(folder()); }), error);
    write_file_atomically(file, good);
    return error;
  }

 private:
  testing::TemporaryFolder place_;
};

TEST_F(FolderVersionErrors, LaterVersionsAreRefusedByName) {
  for (const std::string version : {"7", "99", "9223372036854775807"})
    EXPECT_THAT(
        error_with("\"format_version\": 2", "\"format_version\": " + version),
        HasSubstr(concat(
            (folder() / "config.json").string(),
            ": this program reads model folders of format_version 1 to 6, but got ",
            version,
            ": a later seqconv wrote it; open it with that one or a newer one")));
}

TEST_F(FolderVersionErrors, ValuesThatAreNoVersionAreRefused) {
  for (const std::string value :
       {"0",
        "-1",
        "-9223372036854775808",
        "9223372036854775808",
        "18446744073709551615",
        "1e40",
        "2.0",
        "1.5",
        "true",
        "null",
        "\"abc\"",
        "\"2\"",
        "[2]",
        "{}"})
    EXPECT_THAT(
        error_with("\"format_version\": 2", "\"format_version\": " + value),
        HasSubstr(concat(
            (folder() / "config.json").string(),
            ": format_version must be a whole number from 1 to 6, but got ")))
        << value;
  EXPECT_THAT(
      error_with("\"format_version\": 2,", ""),
      HasSubstr("config.json: the key 'format_version' is missing"));
  EXPECT_THAT(
      error_with("\"format_version\": 2,", R"("format_version": 2,
                 "format_version": 1,)"),
      HasSubstr("config.json: 'format_version' comes twice"));
}

TEST_F(FolderVersionErrors, AVersionThatDoesNotSayAllIsRefused) {
  const fs::path file = folder() / "config.json";
  Json config = testing::read_json_file(file);
  const auto error = [&] {
    write_file_atomically(file, config.dump());
    return testing::error_of([&] { read_translation_description(folder()); });
  };
  config["format_version"] = 1;
  EXPECT_THAT(error(), HasSubstr("config.json: text.tokenizer needs format_version 2, but got 1"));
  config["format_version"] = 2;
  config["architecture"]["encoder"]["norm"] = "pre";
  EXPECT_THAT(
      error(),
      HasSubstr("config.json: architecture.encoder.norm needs format_version 3, but got 2"));
  config["architecture"]["encoder"].erase("norm");
  config["architecture"]["encoder"]["max_positions"] = 64;
  EXPECT_THAT(error(), HasSubstr("encoder.max_positions needs format_version"));
  config["architecture"]["encoder"].erase("max_positions");
  config["architecture"]["decoder"]["positions"] = "learned";
  EXPECT_THAT(error(), HasSubstr("decoder.positions needs format_version 3"));
  config["architecture"]["decoder"].erase("positions");
  config["text"]["max_source_tokens"] = 6;
  EXPECT_THAT(
      error(), HasSubstr("config.json: text.max_source_tokens needs format_version 5, but got 2"));
  for (const Json& value : {Json(1), Json(-2), Json("6"), Json(2.5)}) {
    config["text"]["max_source_tokens"] = value;
    EXPECT_THAT(error(), HasSubstr("text.max_source_tokens must be a whole number from 2 on"));
  }
  config["text"].erase("max_source_tokens");
  config["architecture"]["positions"] = "none";
  EXPECT_THAT(
      error(),
      HasSubstr(
          "config.json: architecture.positions = \"none\" needs format_version 3, but got 2"));
  fs::remove_all(folder());
  fs::copy(testing::version_folders() / "fallback_3", folder());
  config = testing::read_json_file(file);
  config["format_version"] = 2;
  EXPECT_THAT(
      error(), HasSubstr("config.json: text.subword_fallback needs format_version 3, but got 2"));
}

}  // namespace
}  // namespace seqconv::internal
