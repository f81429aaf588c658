#pragma once

#include <string>
#include <vector>

#include "train/corpus_facts.h"
#include "train/key_table.h"

/// Settings that a run chooses by itself (sizes = "auto"): for its data and its time.
namespace seqconv::internal {

/// The time and threads that a run may spend.
struct RunBudget {
  double minutes = 0;  ///< 0: not known
  int64_t threads = 1;
  bool on_gpu = false;
};

/// Keys with values, as a configuration has them, and a line for each choice: why.
struct AutoSettings {
  Json table;
  std::vector<std::string> reasons;
};

/// Chooses sizes, rates and lengths for a text and a budget. `given` is the configuration's
/// table: keys that it has are not in the result, and what is chosen beside them fits them
/// (kernel sizes to layers and blocks). The tables that it goes by, from measurement
/// (docs/your_own_data.md), are in auto_tables.h. UsageError for values in `given` of a
/// wrong type.
AutoSettings choose_settings(const Json& given, const CorpusFacts& facts, const RunBudget& budget);

/// Tells whether the table of a file, or none, leaves all sizes to the program: no [model],
/// [batching], [schedule] or [optimizer], and no text.subword_size.
bool says_nothing_of_sizes(const Json& table);

}  // namespace seqconv::internal
