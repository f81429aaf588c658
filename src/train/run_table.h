#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"
#include "base/rooted_path.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// Says which run a configuration's table is for.
struct RunTable {
  std::filesystem::path output;
  bool resume = false;
  std::string init_from;
  Links links = Links::kInside;
  bool dry_run = false;
};

/// `table`, the configuration as it is given, with what the program chooses beneath it where
/// sizes = "auto": for the text and the time, which it logs with reasons. A resumed run has what it
/// began with; one that starts from another model (init_from) has that model's [model] and [text],
/// and a quarter of the learning rate. The first process chooses for all. Errors: those of reading
/// the text; UsageError for a wrong [data].
Json complete_table(Json table, const RunTable& run, Communicator& processes);

}  // namespace seqconv::internal
