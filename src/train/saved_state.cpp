#include "train/saved_state.h"

#include <span>
#include <string_view>
#include <utility>

#include "base/checksum.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFormat = "seqconv-training-state-";  // + version
constexpr const char* kChecksum = "checksum";

Json parse_metadata(const SafetensorsReader& reader, const char* key) {
  return parse_json(
      state_metadata(reader, key), concat(reader.path().string(), ": metadata '", key, "'"));
}

/// Error unless the settings are an object whose parts have their types: what
/// they say is compared with the run that goes on.
void check_settings(const Json& settings, const std::string& file) {
  const std::string where = file + ": the settings of the run are malformed: ";
  const auto check = [&](const Json& object, const char* key, auto has_type) {
    SEQCONV_CHECK(
        !object.contains(key) || has_type(object[key]),
        where,
        key,
        " cannot be ",
        detail::show_json(object[key]));
  };
  const auto is_object = [](const Json& j) { return j.is_object(); };
  const auto is_count = [](const Json& j) { return j.is_number_integer(); };
  SEQCONV_CHECK(
      settings.is_object(), where, "an object was wanted, but got ", detail::show_json(settings));
  for (const char* key : {"config", "text", "inputs"})
    check(settings, key, is_object);
  for (const char* key : {"threads", "processes"})
    check(settings, key, is_count);
  if (settings.contains("config"))
    check(settings["config"], "text", is_object);
}

/// Error for a file that is no state, or one of another version.
void check_version(const SafetensorsReader& reader) {
  const std::string& format = state_metadata(reader, "format");
  const std::string wanted = state_format();
  SEQCONV_CHECK(
      format == wanted,
      reader.path().string(),
      ": this program reads training states of format '",
      wanted,
      "', but got '",
      format,
      format.starts_with(kFormat) ? "': another version of seqconv wrote it; resume with that one, "
                                    "or start another run from the model with --init-from"
                                  : "'");
}

/// Error for numbers of batches and updates that no run counts to.
void check_position(const fs::path& file, const Position& position) {
  const std::pair<const char*, int64_t> counts[] = {
      {"epoch", position.epoch},
      {"batch", position.batch},
      {"update", position.update},
      {"micro_batch", position.micro_batch},
      {"skips_in_a_row", position.skips_in_a_row},
      {"updates_at_loss_scale", position.updates_at_loss_scale},
      {"metrics_records", position.metrics_records},
      {"optimizer.steps", position.optimizer.steps}};
  for (const auto& [key, count] : counts)
    SEQCONV_CHECK(
        count >= 0,
        file.string(),
        ": the training state is damaged: its ",
        key,
        " must be >= 0, but got ",
        count);
}

}  // namespace

std::string state_format() {
  return concat(kFormat, kStateVersion);
}

std::string state_checksum(
    const std::map<std::string, TensorView>& views,
    const std::map<std::string, std::string>& metadata) {
  uint64_t sum = 0;
  for (const auto& [key, value] : metadata)
    if (key != kChecksum)
      sum = checksum(std::as_bytes(std::span(value)), sum);
  for (const auto& [name, view] : views)
    sum = checksum(view.data, sum);
  return checksum_text(sum);
}

const std::string& state_metadata(const SafetensorsReader& reader, const char* key) {
  const auto found = reader.metadata().find(key);
  SEQCONV_CHECK(
      found != reader.metadata().end(),
      reader.path().string(),
      ": not a training state, its metadata lack '",
      key,
      "'");
  return found->second;
}

SavedState read_state(const RootedPath& file) {
  const SafetensorsReader reader(file);
  check_version(reader);
  SEQCONV_CHECK(
      state_metadata(reader, kChecksum) == state_checksum(reader.tensors(), reader.metadata()),
      file.string(),
      ": the training state is damaged, its checksum does not fit; restore the file from a copy, "
      "or train anew from a checkpoint with --init-from");
  SavedState saved;
  saved.settings = parse_metadata(reader, "settings");
  if (saved.settings.is_null())  // of a run without any
    saved.settings = Json::object();
  check_settings(saved.settings, file.string());
  try {
    read_options(parse_metadata(reader, "position"), "position", saved.position);
  } catch (const UsageError& error) {
    fail(file.string(), ": ", error.what());
  }
  check_position(file, saved.position);
  return saved;
}

}  // namespace seqconv::internal
