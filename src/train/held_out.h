#pragma once

#include <filesystem>

#include "train/options.h"

/// Validation text that is set aside from the training text where none is given.
namespace seqconv::internal {

/// Tells whether `config` wants samples to be held out: data.hold_out, without validation text.
bool holds_out(const TrainConfig& config);

/// Sets about data.hold_out samples aside, a tenth of the text at most, writes them as
/// validation.* into `folder`, which is there, and returns where they came from.
///
/// Pairs: those whose source (JSON lines, stories: whose line) has the smallest hashes, so that
/// samples of one source never stand on both sides, and sorted files give all lengths. Language
/// models: the last lines with text, which nothing before them continues. Says in the log how
/// many, and how many targets stand in the training text beside another source. Errors: those
/// of reading the text; fewer than ten samples; Error of files that cannot be written.
HeldOut hold_out(const TrainConfig& config, const std::filesystem::path& folder);

/// Reads back what hold_out wrote into `folder`. Error when it is not there or damaged.
HeldOut open_held_out(const TrainConfig& config, const std::filesystem::path& folder);

}  // namespace seqconv::internal
