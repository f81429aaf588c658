#pragma once

#include "seqconv/pipeline/engine.h"

namespace seqconv::cli {

/// Loads libseqconv_engine.so (and with it LibTorch) on the first call, from
/// the program's own folder's ../lib, or from beside the program. Error says
/// where it was looked for and why it could not be loaded.
const EngineTable& engine();

}  // namespace seqconv::cli
