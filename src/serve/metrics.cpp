#include "serve/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

namespace seqconv::internal {
namespace {

struct Family {
  std::string_view name;
  const char* type;
  const char* help;
};

constexpr Family kFamilies[] = {
    {"process_cpu_seconds_total", "counter", "Processor time of the process"},
    {"process_resident_memory_bytes", "gauge", "Memory of the process"},
    {"seqconv_connections", "gauge", "Open connections"},
    {"seqconv_model_bytes", "gauge", "Bytes of an open model: its file and its weights"},
    {"seqconv_model_open", "gauge", "1 for a model that is open"},
    {"seqconv_model_openings_total", "counter", "Times that a model was opened"},
    {"seqconv_requests_total", "counter", "Requests by what answered them and status"},
    {"seqconv_translated_characters_total", "counter", "Characters of texts that were translated"},
    {"seqconv_translated_sentences_total", "counter", "Sentences that were translated"},
};

constexpr auto kSecondsLimits =
    std::to_array<double>({0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60});
constexpr const char* kSeconds = "seqconv_request_seconds";

std::string number_text(double value) {
  std::ostringstream text;
  text.precision(15);
  text << value;
  return text.str();
}

std::string sample(const std::string& name, const std::string& labels, double value) {
  return name + (labels.empty() ? "" : "{" + labels + "}") + " " + number_text(value) + "\n";
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string label_text(std::string_view name, std::string_view value) {
  std::string text(name);
  text += "=\"";
  for (const char c : value)
    text += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  return text + '"';
}

void Metrics::add_request(const std::string& route, unsigned status, double seconds) {
  const std::string label = label_text("route", route);
  const std::lock_guard lock(mutex_);
  ++counters_
      ["seqconv_requests_total{" + label + "," + label_text("status", std::to_string(status)) +
       "}"];
  Histogram& histogram = seconds_[label];
  histogram.counts.resize(kSecondsLimits.size());
  for (size_t i = 0; i < kSecondsLimits.size(); ++i)
    histogram.counts[i] += seconds <= kSecondsLimits[i] ? 1 : 0;
  ++histogram.count;
  histogram.sum += seconds;
}

void Metrics::add_translation(
    const std::string& source, const std::string& target, int64_t sentences, int64_t characters) {
  const std::string labels =
      "{" + label_text("source", source) + "," + label_text("target", target) + "}";
  const std::lock_guard lock(mutex_);
  counters_["seqconv_translated_sentences_total" + labels] += static_cast<double>(sentences);
  counters_["seqconv_translated_characters_total" + labels] += static_cast<double>(characters);
}

std::string Metrics::text(std::vector<Gauge> gauges) const {
  gauges.push_back({"process_cpu_seconds_total", "", processor_seconds()});
  gauges.push_back({"process_resident_memory_bytes", "", resident_bytes()});
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto head = [&](std::string_view name, const char* type, const char* help) {
    text.append("# HELP ").append(name).append(" ").append(help);
    text.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  };
  for (const Family& family : kFamilies) {
    std::string samples;
    for (const auto& [name, value] : counters_)
      if (name.substr(0, name.find('{')) == family.name)
        samples += name + " " + number_text(value) + "\n";
    for (const Gauge& gauge : gauges)
      if (gauge.name == family.name)
        samples += sample(gauge.name, gauge.labels, gauge.value);
    if (samples.empty())
      continue;
    head(family.name, family.type, family.help);
    text += samples;
  }
  if (!seconds_.empty())
    head(kSeconds, "histogram", "Seconds from a request's first byte to its answer's last");
  const std::string name = kSeconds;
  for (const auto& [labels, histogram] : seconds_) {
    for (size_t i = 0; i < kSecondsLimits.size(); ++i)
      text += sample(
          name + "_bucket",
          labels + ",le=\"" + number_text(kSecondsLimits[i]) + "\"",
          static_cast<double>(histogram.counts[i]));
    text += sample(name + "_bucket", labels + ",le=\"+Inf\"", static_cast<double>(histogram.count));
    text += sample(name + "_sum", labels, histogram.sum);
    text += sample(name + "_count", labels, static_cast<double>(histogram.count));
  }
  return text;
}

}  // namespace seqconv::internal
