#pragma once

#include "train/engine/engine.h"

namespace seqconv::internal::cli {

/// Loads LibTorch (libtorch.h) and libseqconv_engine.so on the first call, the
/// latter from the program's own folder's ../lib, or from beside the program.
/// Error says where each was looked for and why it could not be loaded.
const EngineTable& engine();

}  // namespace seqconv::internal::cli
