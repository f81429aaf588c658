#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/models.h"
#include "serve/options.h"
#include "serve/translate_call.h"
#include "serve/translation_job.h"

namespace seqconv::internal {

/// All that is served, without the rules of who may ask: LibreTranslate's interface, and streams.
/// Functions run in a worker's thread; what they throw is answered by answer_for_fault.
class Service {
 public:
  using Post = std::function<void(std::function<void()>)>;
  using Exchange = std::shared_ptr<HttpExchange>;

  /// `post` runs work in a worker's thread. UsageError; Error for folders that hold no model.
  Service(const ServeOptions& options, Metrics& metrics, Post post);

  HttpAnswer languages() const;
  HttpAnswer settings() const;
  /// OpenAPI 3.1, with the languages and limits that are here.
  HttpAnswer spec() const;
  HttpAnswer detect(const Json& parameters) const;

  /// Answers later, in one piece or as events.
  void translate(const Exchange& exchange, const Json& parameters, bool as_stream);
  /// Answers before it returns, which takes long: in a thread of its own.
  void generate(const Exchange& exchange, const Json& parameters);

  /// Answers before it returns, in a thread that does it alone. The model is opened once more,
  /// and stays open for a while.
  void inspect(const Exchange& exchange, const Json& parameters);

  /// Something is under way until the object that this gives is gone.
  std::shared_ptr<void> under_way();
  /// Waits until nothing is under way, for which those without clients must have been cancelled.
  void wait();

  Models& models() { return models_; }
  bool has_language_models() const;
  std::vector<Gauge> gauges() const;

 private:
  struct Translation;

  std::vector<std::string> sources(std::string_view target = "") const;
  JobText job_text(const TranslateCall& call, const std::string& text, Translation& translation);
  std::string source_of(const TranslateCall& call, const std::string& text, Json& detected) const;
  size_t model_between(const std::string& source, const std::string& target) const;
  void admit(const Translation& translation);
  std::shared_ptr<void> admit_inspection();
  void end(const Exchange& exchange, const Translation& translation, bool as_stream);
  Json outcome(const Translation& translation);

  const ServeOptions options_;
  Metrics& metrics_;
  const Post post_;
  Models models_;
  std::mutex mutex_;  // of these:
  std::condition_variable ended_;
  int64_t under_way_ = 0;
  int64_t waiting_ = 0;  // sentences of all jobs
  int64_t inspections_ = 0;
};

}  // namespace seqconv::internal
