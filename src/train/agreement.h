#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/rooted_path.h"
#include "train/processes/communicator.h"
#include "train/trainer.h"

/// What the processes of a run must agree in before they train.
namespace seqconv::internal {

/// The text of process `root`, in all.
std::string broadcast_text(Communicator& processes, std::string text, int64_t root);

/// What the lowest rank that has a fault says of it, in all; "" is none.
std::string lowest_fault(Communicator& processes, const std::string& fault);

/// UsageError with the same message in all processes when one of them brings a
/// fault, "" being none: that of the lowest rank that has one.
void fail_together(Communicator& processes, const std::string& fault);

/// The path of the first key, such as "model.dim", in which two tables differ;
/// "" when they are equal.
std::string differing_key(const Json& one, const Json& other);

/// Compares program, command, configuration and content of the data (`inputs`)
/// in all processes; UsageError naming what differs.
void check_same_run(Communicator& processes, const TrainRequest& request, const Json& inputs);

/// A checksum of a file's size and content, or where it is larger than 64 MiB
/// of evenly spread samples: processes compare by it without reading a corpus
/// each.
uint64_t sampled_checksum(const RootedPath& file);

/// Whether this process reads `text` in a file, within `patience`: file systems
/// of a network show what another one has written after a while.
bool sees(
    const std::filesystem::path& file, const std::string& text, std::chrono::milliseconds patience);

/// UsageError when what the first process writes into `folder`, which exists
/// there, cannot be read by all.
void check_shared_folder(Communicator& processes, const std::filesystem::path& folder);

}  // namespace seqconv::internal
