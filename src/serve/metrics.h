#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

/// Numbers about a server, in the text format that Prometheus reads.
namespace seqconv::internal {

/// Values that are not counted but looked up: "name{labels}" and the value.
struct Gauge {
  std::string name;
  std::string labels;  ///< label_text(), or ""
  double value = 0;
};

/// The text of one label: source="de". Any value may stand in it.
std::string label_text(std::string_view name, std::string_view value);

/// Counts requests and translations. Nothing of a client is in it: no address, no key, no path
/// that is not served. Any thread.
class Metrics {
 public:
  /// `route`: one of those that are served, or "other".
  void add_request(const std::string& route, unsigned status, double seconds);
  void add_translation(
      const std::string& source, const std::string& target, int64_t sentences, int64_t characters);

  /// All of it, with `gauges`, sorted; processor time and memory of the process too.
  std::string text(std::vector<Gauge> gauges) const;

 private:
  struct Histogram {
    std::vector<int64_t> counts;  // up to each limit
    int64_t count = 0;
    double sum = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, double> counters_;    // by name and labels
  std::map<std::string, Histogram> seconds_;  // by labels
};

}  // namespace seqconv::internal
