#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

#include "base/launch.h"
#include "train/processes/communicator.h"

/// Several processes that were started together to train one model.
namespace seqconv::internal {

/// The processes that were started together with this one. Opens the library of
/// MPI when there are several; UsageError when the starter is no good, Error
/// when that library was not built or cannot be loaded. Those of torchrun
/// cannot speak before open_on_device(): only ask who they are, and end.
std::shared_ptr<Communicator> open_communicator();

/// Opens what `processes`, as open_communicator() gave them, train through with
/// models on `device`, one for each: themselves on the CPU, NCCL on CUDA
/// devices. There they need not have been able to speak. UsageError when
/// torchrun has started them for the CPU; in all, when their kinds of device
/// differ; when several would use one device. Error when NCCL was not built or
/// cannot be loaded.
std::shared_ptr<Communicator> open_on_device(
    std::shared_ptr<Communicator> processes, at::Device device);

/// Threads that a process uses when none are asked for: its share of the
/// machine's cores, and not more than it is allowed.
int64_t share_of_cores(const Communicator& processes);

/// Runs `work` in each process of a run. When it fails in one, that one says
/// why and ends them all; of a fault that all meet the first one speaks.
void run_together(Communicator& processes, const std::function<void()>& work);

}  // namespace seqconv::internal
