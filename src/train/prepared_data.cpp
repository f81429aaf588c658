#include "train/prepared_data.h"

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/signals.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFiles = "files";  // the stamp's checksums, by name

/// Over a stamp without its own checksum.
std::string stamp_checksum(Json stamp) {
  stamp.erase("checksum");
  return checksum_text(checksum(stamp.dump()));
}

/// The stamp of earlier work, or null when there is none to be used.
Json read_stamp(const RootedPath& file, const Json& inputs) {
  if (!fs::exists(file))
    return {};
  const std::string text = read_file(file);
  try {
    const Json stamp = parse_json(text, file.string());
    if (!stamp.is_object())
      return {};
    // Older programs wrote no checksums.
    const bool checked = stamp.contains("checksum") || stamp.contains(kFiles);
    if (checked && stamp.value("checksum", Json()) != stamp_checksum(stamp))
      log_warning(file.string(), " is damaged; the data are encoded again");
    else if (stamp.value("inputs", Json()) == inputs)
      return stamp;
  } catch (const Error&) {
    log_warning(file.string(), " is damaged; the data are encoded again");
  }
  return {};
}

/// Error for the first file that is not what the stamp says.
void check_files(const RootedPath& folder, const Json& stamp) {
  const Json files = stamp.value(kFiles, Json::object());
  for (const auto& [name, sum] : files.items())
    SEQCONV_CHECK(
        checksum_text(file_checksum(folder / name)) == sum,
        (folder / name).string(),
        " is damaged, its checksum does not fit");
}

PreparedData open_data(const fs::path& folder, const Json& stamp, const CorpusRecipes& recipes) {
  PreparedData data;
  data.train = recipes.train.open(folder / "train", stamp.at("train"));
  if (recipes.valid)
    data.valid = recipes.valid->open(folder / "valid", stamp.at("valid"));
  return data;
}

/// Writes one corpus and notes its report and its files.
void write_corpus(
    const fs::path& folder, const std::string& name, const CorpusRecipe& recipe, Json& stamp) {
  stamp[name] = recipe.write(folder / name);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(name + ".") && !unfinished_file(file))
      stamp[kFiles][file] = checksum_text(file_checksum(entry.path()));
  }
}

Json write_data(const fs::path& folder, const Json& inputs, const CorpusRecipes& recipes) {
  create_folder(folder);
  Json stamp = {{"inputs", inputs}, {kFiles, Json::object()}};
  write_corpus(folder, "train", recipes.train, stamp);
  if (recipes.valid)
    write_corpus(folder, "valid", *recipes.valid, stamp);
  stamp["checksum"] = stamp_checksum(stamp);
  write_file_atomically(folder / "stamp.json", stamp.dump(2) + "\n");
  return stamp;
}

}  // namespace

PreparedData prepare_data(
    const fs::path& folder, const Json& inputs, const CorpusRecipes& recipes) {
  const Json stamp = read_stamp(RootedPath(folder) / "stamp.json", inputs);
  if (!stamp.is_null()) {
    try {
      check_files(folder, stamp);
      return open_data(folder, stamp, recipes);
    } catch (const Error& error) {
      log_warning(error.what(), "; the data are encoded again");
    } catch (const Json::exception&) {
      log_warning((folder / "stamp.json").string(), " is damaged; the data are encoded again");
    }
  }
  const Json written = write_data(folder, inputs, recipes);
  return open_data(folder, written, recipes);
}

PreparedData open_prepared_data(
    const fs::path& folder, const std::string& stamp, const CorpusRecipes& recipes) {
  const std::string file = (folder / "stamp.json").string();
  try {
    return open_data(folder, parse_json(stamp, file), recipes);
  } catch (const Json::exception&) {
    fail(file, " is damaged");
  }
}

void report_data(const PreparedData& data) {
  const auto report = [](const char* name, const PreparedCorpus& corpus) {
    log_info(name, ": ", corpus.summary);
    for (const std::string& warning : corpus.warnings)
      log_warning(name, ": ", warning);
  };
  report("training data", data.train);
  if (data.valid)
    report("validation data", *data.valid);
}

void warn_of_shared_samples(const PreparedData& data) {
  if (!data.valid)
    return;
  const int64_t all = data.valid->samples->size();
  const int64_t shared = count_shared(*data.valid->samples, *data.train.samples);
  if (shared > 0 && 100 * shared >= all)
    log_warning(
        shared,
        " of ",
        all,
        " samples of data.valid_source and data.valid_target are training data too: what is "
        "measured on them tells nothing of other text");
}

void stop_preparing_if_asked() {
  if (const int signal = stop_signal())
    throw Interrupted(
        signal,
        "interrupted while the data were being prepared; nothing was trained yet, start the same "
        "command again");
}

void check_same_inputs(const Json& stored, const Json& present) {
  for (const auto& [key, value] : present.items()) {
    const Json before = stored.value(key, Json());
    if (before == value)
      continue;
    if (key == "text")
      fail("cannot resume: the model folder's text files have changed");
    fail_usage("cannot resume: the content of data.", key, " is not what the run began with");
  }
}

}  // namespace seqconv::internal
