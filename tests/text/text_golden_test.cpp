#include <gmock/gmock.h>

#include "base/characters.h"
#include "base/files.h"
#include "base/options.h"
#include "support/golden_case.h"
#include "text/segmenter.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {
namespace {

void check_text(const std::filesystem::path& folder) {
  SCOPED_TRACE(folder.filename());
  const Json golden = Json::parse(read_file(folder / "golden.json"));
  const auto vocabulary = std::make_shared<Vocabulary>(Vocabulary::load(folder / "dict.de.txt"));
  EXPECT_EQ(vocabulary->size(), golden["vocab_size"].get<int64_t>());
  EXPECT_EQ(vocabulary->to_text(), read_file(folder / "dict.de.txt"));
  TextOptions options;
  options.lowercase = true;
  const TextPipeline pipeline(
      make_bpe_segmenter(Bpe::load(folder / "bpecodes")), vocabulary, Preparation(options, ""));
  int lines = 0;
  const auto compare = [&](const Json& row, const std::string& side) {
    const auto line = row[side + "_tok"].get<std::string>();
    std::vector<int32_t> ids = pipeline.encode(line);
    ids.push_back(kEndId);
    EXPECT_EQ(ids, row[side + "_tokens"].get<std::vector<int32_t>>()) << line;
    ids.pop_back();
    const auto pieces = row[side + "_bpe"].get<std::string>();
    EXPECT_THAT(pipeline.symbols(ids), ::testing::ElementsAreArray(split_words(pieces)));
    EXPECT_EQ(pipeline.decode(ids), line);
    ++lines;
  };
  for (const Json& row : golden["rows"]) {
    compare(row, "src");
    compare(row, "ref");
  }
  EXPECT_EQ(lines, 2 * static_cast<int>(golden["rows"].size()));
  EXPECT_GT(lines, 0);
}

TEST(TextGolden, EncodesTokenisedLinesAsTheReferenceModelDid) {
  const auto folders = testing::golden_folders_where(
      [](const auto& folder) { return std::filesystem::exists(folder / "golden.json"); });
  SEQCONV_REQUIRE_GOLDEN(folders);
  for (const auto& folder : folders)
    check_text(folder);
}

}  // namespace
}  // namespace seqconv::internal
