#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "base/log.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "base/signals.h"
#include "support/temporary_folder.h"
#include "support/version_folders.h"
#include "tiny_task.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

// Whoever turns these red has changed what old training states mean: raise
// kStateVersion, and read or refuse the old ones (docs/model_folder.md).
namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using testing::VersionFolder;

std::vector<VersionFolder> runs() {
  std::vector<VersionFolder> found;
  for (VersionFolder& folder : testing::all_version_folders())
    if (fs::exists(folder.state()))
      found.push_back(std::move(folder));
  return found;
}

/// The configuration of a run, with its data where they are now.
TrainConfig config_of(const VersionFolder& run) {
  TrainConfig config = read_train_config(load_toml(run.path / "training" / "config.toml"));
  for (auto* files : testing::file_lists(config.data))
    for (std::string& file : *files)
      file = testing::version_folders() / file;
  return config;
}

/// The records of a resumed run that its run of that time has as well.
Json records_of(const fs::path& run, const Json& wanted) {
  const int64_t first = wanted.at(0).at("update");
  std::istringstream lines(read_file(run / "training" / "metrics.jsonl"));
  Json found = Json::array();
  for (std::string line; std::getline(lines, line);) {
    Json record = Json::parse(line);
    const auto kind = record.at("kind").get<std::string>();
    if ((kind == "train" || kind == "validation") && record.at("update") >= first)
      found.push_back(std::move(record));
  }
  return found;
}

void expect_same_numbers(const Json& found, const Json& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(concat("record ", i));
    for (const auto& [key, value] : wanted[i].items()) {
      if (!value.is_number_float()) {
        EXPECT_EQ(found[i].at(key), value) << key;
        continue;
      }
      // Float32 of other processors differs by less, other masks, orders and
      // moments by far more.
      const auto number = value.get<double>();
      EXPECT_NEAR(found[i].at(key).get<double>(), number, 2e-4 * number) << key;
    }
  }
}

TEST(StateVersions, EveryVersionHasAState) {
  std::set<std::string> found;
  for (const VersionFolder& run : runs())
    found.insert(SafetensorsReader(run.state()).metadata().at("format"));
  std::set<std::string> wanted;
  for (int64_t version = 1; version <= kStateVersion; ++version)
    wanted.insert(concat("seqconv-training-state-", version));
  EXPECT_EQ(found, wanted);
}

TEST(StateVersions, EveryOptimizerHasAStateInTheMiddleOfAnUpdate) {
  std::set<OptimizerKind> found;
  for (const VersionFolder& run : runs())
    if (read_state(run.state()).position.micro_batch > 0)
      found.insert(config_of(run).optimizer.kind);
  EXPECT_EQ(found.size(), EnumNames<OptimizerKind>::kNames.size());
}

// The recorded numbers are those of a run that never stopped.
TEST(StateVersions, ResumedRunsGoOnAsTheirProgramWouldHave) {
  set_log_level(LogLevel::kWarning);
  set_stop_signal(0);
  for (const VersionFolder& run : runs()) {
    SCOPED_TRACE(run.path);
    const testing::TemporaryFolder place;
    TrainRequest request;
    request.config = config_of(run);
    request.output = place.path() / "run";
    request.resume = true;
    fs::copy(run.path, request.output, fs::copy_options::recursive);
    train_model(request);
    const Json& wanted = run.expected.at("training");
    expect_same_numbers(records_of(request.output, wanted), wanted);
  }
}

}  // namespace
}  // namespace seqconv::internal
