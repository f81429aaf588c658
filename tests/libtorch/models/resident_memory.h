#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace seqconv::internal::testing {

/// Kilobytes behind a name in /proc/self/status.
inline int64_t status_kb(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    int64_t value = 0;
    if (key == name + ":" && status >> value)
      return value;
  }
  return 0;
}

/// Forgets the peak of resident memory; false where the system has no such
/// thing.
inline bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace seqconv::internal::testing
