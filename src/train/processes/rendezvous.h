#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <functional>

#include "base/launch.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// The store in which the processes of a run find each other. With a `host`
/// the first process opens one and tells the others where; without, it is at
/// MASTER_ADDR and MASTER_PORT, where torchrun has opened it
/// (TORCHELASTIC_USE_AGENT_STORE) or the first process does; there each start
/// of the processes (TORCHELASTIC_RESTART_COUNT) sees what it wrote alone.
/// Variables are read through `variable`: ::getenv, but for tests. UsageError
/// for those that are missing or no good, Error when the store cannot be
/// reached within `patience`.
c10::intrusive_ptr<c10d::Store> open_store(
    const Launch& launch,
    Communicator* host,
    const std::function<const char*(const char*)>& variable,
    std::chrono::milliseconds patience = std::chrono::minutes(5));

/// UsageError in all processes when two of them have one device. `own` is what
/// this one has, as shared_device_fault() takes it; each has opened the store.
void check_own_devices(c10d::Store& store, const Launch& launch, const std::string& own);

}  // namespace seqconv::internal
