#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "runtime/runtime_backends.h"
#include "seqconv/requests.h"

namespace seqconv::internal {

/// Says what is served, to whom and how much of it: flags of `seqconv serve`, and keys of the
/// file that --config names.
struct ServeOptions {
  std::vector<std::string> model;
  std::vector<std::string> language_model;
  std::vector<std::string> terminology;
  std::string host = "127.0.0.1";
  int64_t port = 5000;
  std::vector<std::string> allowed_host;
  std::vector<std::string> cors;
  std::string keys;
  bool require_key = false;
  int64_t requests_per_minute = 0;
  std::string access_log;
  int64_t metrics_port = 0;

  double keep_minutes = 0;
  int64_t memory_mb = 0;
  bool preload = false;
  int64_t threads = 0;
  ComputeType compute_type = ComputeType::kModel;
  int64_t max_wait_ms = 0;
  bool follow_links = false;

  double timeout_seconds = 300;
  double drain_seconds = 30;
  int64_t max_waiting = 20'000;
  int64_t max_characters = 100'000;
  int64_t max_sentence_characters = 2'000;
  int64_t max_items = 1'000;
  int64_t max_alternatives = 10;
  int64_t max_length = 2'000;
  int64_t max_body_kb = 2'048;
  int64_t max_connections = 1'024;
  double idle_seconds = 60;
  double header_seconds = 10;
  double body_seconds = 30;

  template <class Visitor>
  void visit(Visitor& v) {
    v("model", model, "Model of a pair of languages: SOURCE-TARGET=DIR, as de-en=runs/mine");
    v("language_model", language_model, "Language model for POST /generate: NAME=DIR");
    v("terminology",
      terminology,
      "Terms of a model's texts: SOURCE-TARGET=FILE of lines TERM<tab>TRANSLATION");
    v("host", host, "IP address to listen at; 0.0.0.0 or :: lets other machines in");
    v("port", port, "TCP port; 0 = any that is free, which the log tells");
    v("allowed_host", allowed_host, "Name that requests may call this server by, beside --host");
    v("cors", cors, "Origin whose pages may read answers, https://example.org; * = any");
    v("keys", keys, "File of keys: lines of --new-key, each with a limit of its own if wanted");
    v("require_key", require_key, "Serve nobody without a key");
    v("requests_per_minute",
      requests_per_minute,
      "Most requests a minute of an address without a key; 0 = any number");
    v("access_log", access_log, "File for a line of JSON per request; - = standard output");
    v("metrics_port", metrics_port, "Port for GET /metrics, in Prometheus' form; 0 = none");
    v("keep_minutes", keep_minutes, "Close a model that nobody has used so long; 0 = never");
    v("memory_mb", memory_mb, "Most memory of open models, in MiB; 0 = no limit");
    v("preload", preload, "Open all models before serving, not when they are first wanted");
    v("threads", threads, "Batches of a model at a time; 0 = all cores");
    v("compute_type",
      compute_type,
      "Type of products: the model's, auto, float32, bfloat16 or int8");
    v("max_wait_ms",
      max_wait_ms,
      "Milliseconds that a sentence waits for others, to share a batch with");
    v("follow_links", follow_links, "Links in model folders may lead out of them");
    v("timeout_seconds", timeout_seconds, "Most time for a request, 503 then; 0 = any");
    v("drain_seconds", drain_seconds, "Time for what is under way when the server is to end");
    v("max_waiting", max_waiting, "Sentences that may wait before requests are refused, 429");
    v("max_characters", max_characters, "Most characters of a request's texts");
    v("max_sentence_characters",
      max_sentence_characters,
      "Most characters of one sentence: a longer one is translated in parts");
    v("max_items", max_items, "Most texts of a request");
    v("max_alternatives", max_alternatives, "Most other translations of a text");
    v("max_length", max_length, "Most tokens that a language model writes for a request");
    v("max_body_kb", max_body_kb, "Largest body, in KiB: 413 above");
    v("max_connections", max_connections, "Most connections at a time");
    v("idle_seconds", idle_seconds, "Time until a connection's next request");
    v("header_seconds",
      header_seconds,
      "Time for the header of a request: its connection is closed after");
    v("body_seconds", body_seconds, "Time for its body: its connection is closed after");
  }
};

/// UsageError for the first value that makes no sense.
void check_options(const ServeOptions& options);

}  // namespace seqconv::internal
