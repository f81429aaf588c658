#include "train/run_writer.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "libtorch/backend/parameters.h"

namespace seqconv::internal {
namespace {

/// Those that a log has of an update.
std::vector<Json> records_of(const std::filesystem::path& log, int64_t update) {
  std::vector<Json> found;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (record.is_object() && record.value("update", Json()) == update)
      found.push_back(std::move(record));
  }
  return found;
}

/// Replaces `to` by the bytes of `from`; a link stays one.
void copy_whole(const RootedPath& from, const std::filesystem::path& to) {
  const MappedFile file(from);
  AtomicFile copy(to);
  copy.write(file.bytes().data(), file.bytes().size());
  copy.commit();
}

}  // namespace

RunWriter::RunWriter(const RunSetup& setup)
    : setup_(setup), writes_(setup.communicator->is_first()) {}

void RunWriter::open_records(const Position& position) {
  if (!writes_)
    return;
  metrics_.emplace(setup_.folder.metrics(), position.metrics_records);
  if (setup_.config.training.tensorboard)
    open_events(position);
}

void RunWriter::open_events(const Position& position) {
  // A validation that is due was perhaps made already, behind the state.
  const bool again = position.validation_due;
  events_.emplace(setup_.folder.events(), position.update + (again ? 0 : 1));
  if (again)
    for (const Json& record : records_of(setup_.folder.metrics(), position.update))
      events_->write(record);
}

void RunWriter::write_record(const Json& record) {
  if (metrics_)
    metrics_->write(record);
  if (events_)
    events_->write(record);
}

void RunWriter::write_passing_record(const Json& record) {
  if (metrics_)
    metrics_->write(record);
}

void RunWriter::promote_last() {
  const Saving saving;
  const RunFolder& folder = setup_.folder;
  if (writes_) {
    copy_whole(folder.best(), folder.kept_best());
    copy_whole(folder.last(), folder.best());
    std::filesystem::remove(folder.last());
  }
  wait_for_the_first();
}

void RunWriter::leave_stop(const Position& position) {
  const RunFolder& folder = setup_.folder;
  std::error_code none;
  if (writes_ && std::filesystem::exists(folder.kept_best(), none)) {
    const Saving saving;
    // It is no best of another state that was put in the place of the run's own.
    if (update_of_parameters(folder.kept_best()) == position.model_update)
      copy_whole(folder.kept_best(), folder.best());
    std::filesystem::remove(folder.kept_best());
  }
  if (writes_)
    std::filesystem::remove(folder.last(), none);
  wait_for_the_first();
}

void RunWriter::write_parameters(
    const std::filesystem::path& file, const Position& position, ParameterAverage& average) {
  const Saving saving;
  if (writes_ || average.is_cut()) {
    ParameterAverage::InUse averaged(average);
    if (writes_)
      save_averaged(file, position, average);
    averaged.end();
  }
  wait_for_the_first();
}

void RunWriter::write_checkpoint(Position& position, ParameterAverage& average) {
  const std::filesystem::path file = setup_.folder.checkpoint(position.update);
  auto& own = position.checkpoints;
  const bool is_own = std::ranges::find(own, position.update) != own.end();
  std::filesystem::path other;
  if (writes_ && !is_own)
    other = set_aside(file);
  try {
    write_parameters(file, position, average);
  } catch (...) {
    std::error_code none;
    if (!other.empty() && !std::filesystem::exists(file, none))
      std::filesystem::rename(other, file, none);
    throw;
  }
  if (!is_own)
    own.push_back(position.update);
  if (!other.empty())
    settle_other(file, other);
}

void RunWriter::settle_other(
    const std::filesystem::path& file, const std::filesystem::path& other) {
  // A run that was killed before its state counted the checkpoint, or whose
  // state was put back, writes the same once more.
  if (std::filesystem::file_size(file) == std::filesystem::file_size(other) &&
      file_checksum(file) == file_checksum(other))
    std::filesystem::remove(other);
  else
    log_warning(
        "the checkpoint '",
        file.string(),
        "' of another run is called '",
        other.filename().string(),
        "' now");
}

void RunWriter::save_averaged(
    const std::filesystem::path& file,
    const Position& position,
    const ParameterAverage& average) const {
  std::map<std::string, std::string> metadata = {
      {"format", "pt"},
      {"update", std::to_string(position.update)},
      {"epoch", std::to_string(position.epoch)}};
  if (const AverageOptions& options = average.options(); options.share > 0)
    metadata["ema_share"] = Json(options.share).dump();
  else if (average.is_kept())
    metadata["ema_decay"] = Json(options.decay).dump();
  save_parameters(file, *setup_.task->model(), metadata);
}

void RunWriter::write_state(Position& position, const RunTensors& tensors) {
  const Saving saving;
  if (writes_)
    position.metrics_records = metrics_->records();
  if (writes_ || tensors.shares.is_cut())
    save_state(setup_.folder.state(), position, setup_.settings, tensors);
  leave_stop(position);
}

void RunWriter::wait_for_the_first() const {
  setup_.communicator->barrier();
}

void RunWriter::clean_up(Position& position) {
  if (!writes_)
    return;
  remove_old_checkpoints(setup_.folder, position.checkpoints, setup_.config.training.keep_last);
  if (setup_.lock->held())
    remove_leftovers(setup_.folder, /*own=*/false);
}

}  // namespace seqconv::internal
