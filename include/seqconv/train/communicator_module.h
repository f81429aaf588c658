#pragma once

#include <memory>

#include "seqconv/train/communicator.h"

namespace seqconv {

/// Raised whenever anything in this file or in communicator.h changes.
inline constexpr int kCommunicatorVersion = 3;

/// What a library with a communicator exports, so that the program starts where
/// what the library needs is not installed: `extern "C" const
/// CommunicatorModule* seqconv_communicator()`.
struct CommunicatorModule {
  int version = kCommunicatorVersion;
  /// Joins the processes that were started together. Once a process.
  std::shared_ptr<Communicator> (*open)() = nullptr;
};

}  // namespace seqconv
