#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http_server.h"
#include "serve/models.h"
#include "serve/translate_call.h"

namespace seqconv::internal {

struct ServerOptions {
  std::vector<ServedModel> models;
  std::string host = "127.0.0.1";
  int port = 5000;
  HttpLimits http{};
  CallLimits calls{};
  ModelsOptions opening{};
  double timeout_seconds = 300;           ///< of a request
  std::vector<std::string> origins{};     ///< that pages may be of; "*": any (CORS)
  std::vector<std::string> host_names{};  ///< beside host, that requests may be for
  std::function<void(const HttpRecord&)> record{};
};

/// Serves LibreTranslate's interface. Texts of all connections share batches.
class TranslationServer {
 public:
  /// Listens, and opens no model before it is wanted. Error where it cannot listen.
  explicit TranslationServer(ServerOptions options);
  ~TranslationServer();
  TranslationServer(const TranslationServer&) = delete;
  TranslationServer& operator=(const TranslationServer&) = delete;

  int port() const;

  /// Serves until stop(), and then until what is under way is answered, or for `drain_seconds`.
  void run(double drain_seconds = 30);

  // From any thread.
  void stop();
  void reload();  ///< opens models anew

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv::internal
