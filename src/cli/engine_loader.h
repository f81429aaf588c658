#pragma once

#include "train/engine/engine.h"

namespace seqconv::internal::cli {

/// Loads LibTorch (libtorch.h) and libseqconv_engine.so on the first call, the
/// latter from the program's own folder's ../lib, or from beside the program.
/// A program without that library goes on as that of the Python package
/// seqconv-torch (torch_package.h), from its beginning: the first call comes
/// before input is read or output written. Error says where each was looked
/// for and why it could not be loaded.
const EngineTable& engine();

}  // namespace seqconv::internal::cli
