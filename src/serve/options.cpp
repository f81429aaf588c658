#include "serve/options.h"

#include <initializer_list>
#include <tuple>

namespace seqconv::internal {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;

void check_whole(
    std::initializer_list<std::tuple<const char*, int64_t, int64_t, int64_t>> options) {
  for (const auto& [name, value, least, most] : options)
    if (value < least || value > most)
      fail_usage(name, " must be between ", least, " and ", most, ", but got ", value);
}

}  // namespace

void check_options(const ServeOptions& options) {
  if (options.model.empty() && options.language_model.empty())
    fail_usage("--model SOURCE-TARGET=DIR or --language-model NAME=DIR must be given");
  check_whole(
      {{"port", options.port, 0, 65535},
       {"metrics_port", options.metrics_port, 0, 65535},
       {"requests_per_minute", options.requests_per_minute, 0, kMost},
       {"memory_mb", options.memory_mb, 0, kMost},
       {"threads", options.threads, 0, 1024},
       {"max_wait_ms", options.max_wait_ms, 0, 60'000},
       {"max_waiting", options.max_waiting, 1, kMost},
       {"max_characters", options.max_characters, 1, kMost},
       {"max_sentence_characters", options.max_sentence_characters, 1, kMost},
       {"max_items", options.max_items, 1, kMost},
       {"max_alternatives", options.max_alternatives, 0, 100},
       {"max_length", options.max_length, 1, kMost},
       {"max_body_kb", options.max_body_kb, 1, int64_t{1} << 20},
       {"max_connections", options.max_connections, 1, int64_t{1} << 20}});
  for (const auto& [name, value, least] :
       std::initializer_list<std::tuple<const char*, double, double>>{
           {"keep_minutes", options.keep_minutes, 0},
           {"timeout_seconds", options.timeout_seconds, 0},
           {"drain_seconds", options.drain_seconds, 0},
           {"idle_seconds", options.idle_seconds, 0.001},
           {"header_seconds", options.header_seconds, 0.001},
           {"body_seconds", options.body_seconds, 0.001}})
    if (!(value >= least && value <= 1e6))
      fail_usage(name, " must be between ", least, " and 1000000, but got ", value);
  if (options.metrics_port != 0 && options.metrics_port == options.port)
    fail_usage("metrics_port must be another one than port, but both are ", options.port);
  if (options.require_key && options.keys.empty())
    fail_usage("require_key needs keys, the file of those that are valid");
}

}  // namespace seqconv::internal
