#pragma once

#include "train/engine/engine.h"

/// What is behind EngineTable. It may throw what the layers below throw;
/// engine.cpp turns all of it into seqconv::internal::Error.
namespace seqconv::internal::engine {

void train(const TrainArguments& arguments);
std::string describe_config(ConfigFormat format);

/// Threads within an operation; 0 leaves LibTorch's choice, all cores.
void set_threads(int64_t threads);

}  // namespace seqconv::internal::engine
