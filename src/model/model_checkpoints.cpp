#include "model/model_checkpoints.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/safetensors.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kUpdate = "update-";
constexpr std::string_view kParametersEnd = ".safetensors";
const fs::path kCheckpoints = fs::path("training") / "checkpoints";
const char* const kBestParameters = "model.safetensors";

/// A file of parameters below a model folder, and their update, -1 where it is not known.
struct FoundParameters {
  fs::path name;
  int64_t update = -1;
};

/// The number behind "update-", -1 for any other text.
int64_t number_of_update(std::string_view text) {
  if (!text.starts_with(kUpdate))
    return -1;
  text.remove_prefix(kUpdate.size());
  int64_t update = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), update);
  return error == std::errc() && end == text.data() + text.size() && update >= 0 ? update : -1;
}

/// The parameters that a run has written, by its state.
struct StatedRun {
  int64_t update = -1;
  std::set<int64_t> checkpoints;
};

/// Nothing for a folder without a state, or with one that does not say it.
std::optional<StatedRun> stated_run(const RootedPath& folder) {
  try {
    const RootedPath file = folder / "training/state.safetensors";
    if (!fs::exists(file))
      return std::nullopt;
    const SafetensorsReader state(file);
    const Json position = Json::parse(state.metadata().at("position"));
    return StatedRun{position.at("update"), position.at("checkpoints")};
  } catch (const std::exception&) {
    return std::nullopt;  // whoever goes on with the run is told why
  }
}

/// Those of training/checkpoints that are the run's own, all where no state says it; ascending.
std::vector<FoundParameters> find_checkpoints(
    const RootedPath& folder, const std::optional<StatedRun>& run) {
  std::vector<FoundParameters> found;
  std::error_code error;
  for (fs::directory_iterator at(folder.path() / kCheckpoints, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = at->path().filename();
    const int64_t update = update_of_checkpoint(name);
    if (update >= 0 && (!run || run->checkpoints.contains(update)))
      found.push_back({kCheckpoints / name, update});
  }
  std::ranges::sort(found, {}, &FoundParameters::update);
  return found;
}

std::optional<FoundParameters> find_parameters(const RootedPath& folder, const char* name) {
  if (!fs::exists(folder / name))
    return std::nullopt;
  return FoundParameters{name, update_of_parameters(folder / name)};
}

/// "best (model.safetensors, update 5), update-4"
std::string list_of(
    const std::optional<FoundParameters>& best,
    const std::optional<FoundParameters>& last,
    const std::vector<FoundParameters>& checkpoints) {
  std::string list;
  const auto add = [&list](const auto&... parts) {
    list += concat(list.empty() ? "" : ", ", parts...);
  };
  for (const auto& [found, name] : {std::pair{&best, kBestCheckpoint}, {&last, kLastCheckpoint}})
    if (*found)
      add(name,
          " (",
          (*found)->name.string(),
          (*found)->update < 0 ? "" : concat(", update ", (*found)->update),
          ")");
  for (const FoundParameters& checkpoint : checkpoints)
    add(kUpdate, checkpoint.update);
  return list.empty() ? "none" : list;
}

/// The latest parameters that the run has written, nothing where none of them are its last.
std::optional<FoundParameters> last_of(
    const std::optional<FoundParameters>& best,
    const std::optional<FoundParameters>& last,
    const std::vector<FoundParameters>& checkpoints,
    const std::optional<StatedRun>& run) {
  if (last)
    return last;
  if (best && best->update < 0)
    return std::nullopt;
  if (!checkpoints.empty())
    return best && best->update > checkpoints.back().update ? best : checkpoints.back();
  return best && run && best->update >= run->update ? best : std::nullopt;
}

std::optional<FoundParameters> of_update(
    int64_t update,
    const std::optional<FoundParameters>& best,
    const std::optional<FoundParameters>& last,
    const std::vector<FoundParameters>& checkpoints) {
  for (const FoundParameters& checkpoint : checkpoints)
    if (checkpoint.update == update)
      return checkpoint;
  for (const auto* found : {&best, &last})
    if (*found && (*found)->update == update)
      return *found;
  return std::nullopt;
}

}  // namespace

std::string checkpoint_name(int64_t update) {
  std::string number = std::to_string(update);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  return concat(kUpdate, number, kParametersEnd);
}

int64_t update_of_checkpoint(const fs::path& name) {
  return name.extension() == kParametersEnd ? number_of_update(name.stem().string()) : -1;
}

int64_t update_of_parameters(const RootedPath& file) {
  const SafetensorsReader reader(file);
  const auto found = reader.metadata().find("update");
  return found == reader.metadata().end() ? -1 : number_of_update(concat(kUpdate, found->second));
}

RootedPath choose_checkpoint(const RootedPath& model, const std::string& name) {
  if (name == kBestCheckpoint)
    return model;
  const int64_t update = number_of_update(name);
  if (name != kLastCheckpoint && update < 0)
    fail_usage("--checkpoint must be best, last or update-N, but got '", name, "'");
  if (!fs::exists(model))
    return model;  // find_model() says it
  if (!fs::is_directory(model))
    fail_usage(
        "--checkpoint ",
        name,
        " chooses among the parameters of a model folder, but '",
        model.string(),
        "' is a file");
  const auto run = stated_run(model);
  const auto best = find_parameters(model, kBestParameters);
  const auto last = find_parameters(model, kLastParameters);
  const auto checkpoints = find_checkpoints(model, run);
  const auto chosen = name == kLastCheckpoint ? last_of(best, last, checkpoints, run)
                                              : of_update(update, best, last, checkpoints);
  SEQCONV_CHECK(
      chosen,
      "'",
      model.string(),
      "' has no parameters for --checkpoint ",
      name,
      "; it has: ",
      list_of(best, last, checkpoints));
  RootedPath file = model / chosen->name;
  log_info("checkpoint ", name, ": update ", chosen->update, ", ", chosen->name.string());
  return file;
}

}  // namespace seqconv::internal
