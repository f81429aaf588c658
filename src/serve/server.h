#pragma once

#include <memory>

#include "serve/options.h"

namespace seqconv::internal {

/// Serves LibreTranslate's interface, and more, over HTTP (docs/serving.md). Texts of all
/// connections share batches.
class Server {
 public:
  /// Listens, and opens no model before it is wanted, unless options say so. UsageError; Error
  /// where it cannot listen, or a file or a model cannot be read.
  explicit Server(const ServeOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;          ///< that was taken for port 0
  int metrics_port() const;  ///< 0: none

  /// Serves until stop(), and then until what is under way is answered or drain_seconds are over.
  void run();

  // From any thread.
  void stop();
  /// Reads keys anew, opens models and the log anew; what fails stays as it was, and is logged.
  void reload();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv::internal
