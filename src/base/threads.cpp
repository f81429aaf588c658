#include "base/threads.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "base/log.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// quota / period in microseconds; no limit for "max", -1 and what is no
/// number.
double processors_of(const std::string& quota, const std::string& period) {
  std::istringstream both(quota + " " + period);
  double microseconds = 0, of = 0;
  const bool limited = both >> microseconds >> of && microseconds > 0 && of > 0;
  return limited ? microseconds / of : kNoLimit;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The limit of one folder of a hierarchy of version 2.
double limit_of_version_2(const fs::path& folder) {
  std::istringstream line(first_line(folder / "cpu.max"));
  std::string quota, period;
  line >> quota >> period;
  return processors_of(quota, period);
}

double limit_of_version_1(const fs::path& folder) {
  return processors_of(
      first_line(folder / "cpu.cfs_quota_us"), first_line(folder / "cpu.cfs_period_us"));
}

/// The least of a group's and those above it. In a container the root may be
/// the group itself, while its path is that outside.
template <class Limit>
double least_limit(const fs::path& root, const fs::path& path, Limit limit) {
  double least = limit(root);
  fs::path folder = root;
  for (const fs::path& part : path.relative_path()) {
    folder /= part;
    least = std::min(least, limit(folder));
  }
  return least;
}

}  // namespace

int64_t processors_of_groups(const fs::path& groups, const fs::path& root) {
  double least = kNoLimit;
  std::ifstream in(groups);
  // NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    const std::string path = line.substr(second + 1);
    const std::string names = line.substr(first + 1, second - first - 1);
    if (names.empty()) {
      least = std::min(least, least_limit(root, path, limit_of_version_2));
    } else if (("," + names + ",").find(",cpu,") != std::string::npos) {
      for (const std::string& name : {names, std::string("cpu")})
        least = std::min(least, least_limit(root / name, path, limit_of_version_1));
    }
  }
  return least == kNoLimit ? 0 : std::max<int64_t>(1, static_cast<int64_t>(std::ceil(least)));
}

int64_t usable_cores() {
  // Counts those that the process is bound to.
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t left = processors_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
  return left == 0 ? cores : std::min(cores, left);
}

int64_t thread_count(int64_t asked) {
  const int64_t cores = usable_cores();
  if (asked <= 0)
    return cores;
  const int64_t most = 4 * cores;
  if (asked > most)
    log_warning(asked, " threads were asked for, but there are ", cores, " cores: using ", most);
  return std::min(asked, most);
}

}  // namespace seqconv::internal
