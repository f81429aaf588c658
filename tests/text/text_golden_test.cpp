#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "seqconv/base/files.h"
#include "seqconv/text/segmenter.h"
#include "seqconv/text/text_pipeline.h"
#include "support/golden_case.h"

namespace seqconv {
namespace {

using testing::golden_folder;

TEST(TextGolden, EncodesTokenisedLinesAsTheReferenceModelDid) {
  const auto folder = golden_folder() / "multi30k-dynamicconv";
  std::vector<std::filesystem::path> files;
  if (std::filesystem::exists(folder / "golden.json"))
    files.push_back(folder / "golden.json");
  SEQCONV_REQUIRE_GOLDEN(files);
  const Json golden = Json::parse(read_file(files[0]));
  const auto vocabulary =
      std::make_shared<Vocabulary>(Vocabulary::load(folder / "dict.de.txt"));
  EXPECT_EQ(vocabulary->size(), golden["vocab_size"].get<int64_t>());
  EXPECT_EQ(vocabulary->to_text(), read_file(folder / "dict.de.txt"));
  TextOptions options;
  options.lowercase = true;
  const TextPipeline pipeline(
      make_bpe_segmenter(Bpe::load(folder / "bpecodes")),
      vocabulary,
      Preparation(options, ""));
  int lines = 0;
  const auto compare = [&](const Json& row, const std::string& side) {
    const auto line = row[side + "_tok"].get<std::string>();
    std::vector<int32_t> ids = pipeline.encode(line);
    ids.push_back(Vocabulary::kEnd);
    EXPECT_EQ(ids, row[side + "_tokens"].get<std::vector<int32_t>>()) << line;
    ids.pop_back();
    EXPECT_EQ(pipeline.symbols(ids), row[side + "_bpe"].get<std::string>());
    EXPECT_EQ(pipeline.decode(ids), line);
    ++lines;
  };
  for (const Json& row : golden["rows"]) {
    compare(row, "src");
    compare(row, "ref");
  }
  EXPECT_EQ(lines, 48);
}

}  // namespace
}  // namespace seqconv
