#include "train/agreement.h"

#include <torch/version.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/checksum.h"
#include "base/files.h"
#include "base/options.h"
#include "kernels/isa.h"
#include "seqconv/version.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// File systems of a network show a new file after a while.
constexpr auto kMostDelay = std::chrono::seconds(10);

/// All that decides a run's numbers, by name.
Json describe_run(const TrainRequest& request, const Json& inputs) {
  return {
      {"version of seqconv", SEQCONV_VERSION},
      {"version of LibTorch", TORCH_VERSION},
      {"instruction set", std::string(enum_name(kernels::best_isa()))},
      {"--output", request.output.string()},
      {"--resume", request.resume},
      {"--init-from", request.init_from},
      {"--dry-run", request.dry_run},
      {"configuration", write_options(request.config)},
      {"content of data", inputs}};
}

std::string value_at(const Json& table, const std::string& path) {
  const Json* value = &table;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const auto found = value->find(path.substr(begin, end - begin));
    if (found == value->end())
      return "missing";
    value = &*found;
    begin = end + 1;
  }
  return value->dump();
}

bool holds(const fs::path& file, const std::string& text) {
  try {
    return fs::exists(file) && read_file(file) == text;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

uint64_t sampled_checksum(const RootedPath& file) {
  constexpr size_t kWhole = size_t{64} << 20;
  constexpr size_t kSample = 4096;
  constexpr size_t kSamples = 1024;
  const MappedFile mapped(file);
  const auto bytes = mapped.bytes();
  if (bytes.size() <= kWhole)
    return checksum(bytes);
  uint64_t sum = bytes.size();
  const size_t step = (bytes.size() - kSample) / (kSamples - 1);
  for (size_t i = 0; i < kSamples; ++i)
    sum = checksum(bytes.subspan(i * step, kSample), sum);
  return sum;
}

bool sees(const fs::path& file, const std::string& text, std::chrono::milliseconds patience) {
  const auto last = std::chrono::steady_clock::now() + patience;
  while (!holds(file, text)) {
    if (std::chrono::steady_clock::now() >= last)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

std::string broadcast_text(Communicator& processes, std::string text, int64_t root) {
  size_t size = text.size();
  processes.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  text.resize(size);
  processes.broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

std::string lowest_fault(Communicator& processes, const std::string& fault) {
  const int64_t nobody = processes.size();
  const int64_t lowest = -processes.largest(fault.empty() ? -nobody : -processes.rank());
  return lowest == nobody ? "" : broadcast_text(processes, fault, lowest);
}

void fail_together(Communicator& processes, const std::string& fault) {
  const std::string lowest = lowest_fault(processes, fault);
  if (!lowest.empty())
    fail_usage(lowest);
}

std::string differing_key(const Json& one, const Json& other) {
  if (one == other)
    return "";
  for (const auto* table : {&one, &other})
    for (const auto& [key, value] : table->items()) {
      const Json a = one.value(key, Json());
      const Json b = other.value(key, Json());
      if (a == b && one.contains(key) == other.contains(key))
        continue;
      if (!a.is_object() || !b.is_object())
        return key;
      return key + "." + differing_key(a, b);
    }
  return "";
}

void check_same_run(Communicator& processes, const TrainRequest& request, const Json& inputs) {
  if (processes.size() == 1)
    return;
  const Json own = describe_run(request, inputs);
  const Json first = Json::parse(broadcast_text(processes, own.dump(), 0));
  const std::string key = differing_key(own, first);
  std::string fault;
  if (!key.empty())
    fault = concat(
        "the processes of a run need the same program, configuration and data, but ",
        key,
        " is ",
        value_at(own, key),
        " in rank ",
        processes.rank(),
        " and ",
        value_at(first, key),
        " in rank 0");
  fail_together(processes, fault);
}

void check_shared_folder(Communicator& processes, const fs::path& folder) {
  if (processes.size() == 1)
    return;
  const fs::path file = folder / "shared";
  std::random_device random;
  const std::string token =
      broadcast_text(processes, checksum_text((uint64_t{random()} << 32) + random()), 0);
  if (processes.is_first())
    write_file_atomically(file, token);
  processes.barrier();
  std::string fault;
  if (!sees(file, token, kMostDelay))
    fault = concat(
        "the processes of a run need one folder that all see, but what rank 0 has written into '",
        folder.string(),
        "' is not there in rank ",
        processes.rank(),
        " ('",
        fs::absolute(folder).string(),
        "')");
  processes.barrier();
  std::error_code error;
  if (processes.is_first())
    fs::remove(file, error);
  fail_together(processes, fault);
}

}  // namespace seqconv::internal
