#pragma once

#include "base/json.h"
#include "train/processes/communicator.h"
#include "train/trainer.h"

namespace seqconv::internal {

/// `table`, the configuration as it is given for a run (the config of `request` plays no part),
/// with what the program chooses beneath it where sizes = "auto": for the text and the time, which
/// it logs with reasons. A resumed run has what it began with; one that starts from another model
/// (init_from) has that model's [model] and [text], and a quarter of the learning rate. The first
/// process chooses for all. Errors: those of reading the text; UsageError for a wrong [data].
Json complete_table(Json table, const TrainRequest& request, Communicator& processes);

}  // namespace seqconv::internal
