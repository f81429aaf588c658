#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <set>

#include "base/files.h"
#include "model/model_description.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

const fs::path kFolders = fs::path(SEQCONV_SOURCE_DIR) / "tests" / "model" / "folders";

/// Opens a folder whose config.json holds this, but for the parameters; "" or
/// what is wrong with it.
std::string open_error(const fs::path& folder, const Json& config) {
  std::ofstream(folder / "config.json") << config.dump();
  try {
    const ModelFiles files = find_model(folder);
    if (task_of_model(files.folder) == Task::kTranslation)
      read_translation_description(files.folder);
    else
      read_language_description(files.folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The places of values in config.json: tables, lists, the first of a list.
/// Layers have keys as the architecture has, and are left out.
std::set<std::string> places(const Json& config) {
  std::set<std::string> all;
  const Json flat = config.flatten();
  for (const auto& [place, value] : flat.items())
    for (Json::json_pointer at(place); !at.empty(); at = at.parent_pointer())
      if ((!std::isdigit(static_cast<unsigned char>(at.back()[0])) || at.back() == "0") &&
          place.find("coder/") == std::string::npos)
        all.insert(at.to_string());
  return all;
}

/// Every value of config.json replaced by others, and gone: the answer, where
/// it is an error, is in words of ours and names the folder.
TEST(DescriptionHostile, ErrorsAreInOurOwnWords) {
  for (const char* model : {"language_1", "cut_5"}) {
    const TemporaryFolder folder;
    fs::copy(kFolders / model, folder.path());
    const Json good = parse_json(read_file(kFolders / model / "config.json"), "config.json");
    EXPECT_EQ(open_error(folder.path(), good), "");
    int refused = 0, opened = 0;
    const auto open = [&](const Json& config, const std::string& what) {
      const std::string error = open_error(folder.path(), config);
      (error.empty() ? opened : refused) += 1;
      if (error.empty())
        return;
      EXPECT_THAT(error, AllOf(HasSubstr(folder.path().string()), Not(HasSubstr("json.exception"))))
          << what;
    };
    for (const std::string& place : places(good)) {
      const Json::json_pointer at(place);
      for (const Json& other : {Json(), Json(-7), Json("x"), Json::array()}) {
        Json changed = good;
        changed[at] = other;
        open(changed, concat(place, " = ", other.dump()));
      }
      if (good.at(at.parent_pointer()).is_object()) {
        Json changed = good;
        changed.at(at.parent_pointer()).erase(at.back());
        open(changed, place + " is gone");
      }
    }
    EXPECT_GT(refused, 2 * opened);
  }
}

TEST(DescriptionHostile, ErrorsSayWhichKeyAndWhatWasWanted) {
  const TemporaryFolder folder;
  fs::copy(kFolders / "translation_2", folder.path());
  const Json good =
      parse_json(read_file(kFolders / "translation_2" / "config.json"), "config.json");
  const auto error = [&](const char* place, const Json& value) {
    Json changed = good;
    changed[Json::json_pointer(place)] = value;
    return open_error(folder.path(), changed);
  };
  EXPECT_THAT(
      error("/text/lowercase", 7), HasSubstr("text.lowercase must be true or false, but got 7"));
  EXPECT_THAT(
      error("/text/source", "x"),
      HasSubstr("text.source must be an object with 'dictionary', but got \"x\""));
  EXPECT_THAT(
      error("/text/source/dictionary", Json::array()),
      HasSubstr("text.source.dictionary must be a string, but got []"));
  EXPECT_THAT(
      error("/text/source/samples", 3), HasSubstr("text.source.samples must be a list, but got 3"));
  EXPECT_THAT(
      error("/text/source/samples/0/ids", {1, -4}),
      HasSubstr("text.source.samples.ids must be ids, from 0 to 2147483647, but got -4"));
  EXPECT_THAT(
      error("/text/source/samples/0", Json::object()),
      HasSubstr("text.source.samples: the key 'line' is missing"));
}

}  // namespace
}  // namespace seqconv::internal
