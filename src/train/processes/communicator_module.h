#pragma once

#include <memory>
#include <string>

#include "base/launch.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// Raised whenever anything in this file or in communicator.h changes.
inline constexpr int kCommunicatorVersion = 5;

/// Says how the processes were started, and what they have already.
struct CommunicatorRequest {
  Launch launch;
  /// Through which they speak on the host; null where nothing was opened.
  std::shared_ptr<Communicator> host;
  int64_t cuda_device = -1;  ///< where this one's model lies; -1: on the host
  /// Tells what that device is among all. Without a host it is still to be seen
  /// that no two processes have the same (shared_device_fault).
  std::string cuda_place;
};

/// The table that a library with a communicator exports, so that the program
/// starts where what the library needs is not installed: `extern "C" const
/// CommunicatorModule* seqconv_communicator()`.
struct CommunicatorModule {
  int version = kCommunicatorVersion;
  /// Joins the processes that were started together. Once a process.
  std::shared_ptr<Communicator> (*open)(const CommunicatorRequest&) = nullptr;
};

}  // namespace seqconv::internal
