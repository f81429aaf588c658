#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rooted_path.h"

/// Reads what training runs wrote of themselves: training/metrics.jsonl
/// (docs/metrics.md).
namespace seqconv::internal::report {

struct Point {
  double x = 0;
  double y = 0;
};

/// The numbers of one kind of record by their keys, over updates.
using Curves = std::map<std::string, std::vector<Point>>;

struct Run {
  std::string name;
  Curves train{};
  Curves validation{};
  /// Tells what a reader should know: lines that are no records.
  std::vector<std::string> notes{};
};

/// The file of a run: `path` itself where it is one, else that of the model
/// folder `path`; nothing where that folder has none.
std::optional<RootedPath> metrics_file(const RootedPath& path);

/// Reads such a file. A line that is no record (a run that was killed may have
/// left half of one) is left out, and a note says so; numbers that are not
/// finite, or as large as 1e30, are left out. Error for a file without any
/// record of training or validation.
Run read_run(const RootedPath& file, std::string name);

/// The last part of each path, or the whole path where two would be the same.
std::vector<std::string> run_names(const std::vector<std::filesystem::path>& paths);

}  // namespace seqconv::internal::report
