#pragma once

#include <string>
#include <vector>

#include "pipeline/system.h"

namespace seqconv::bench {
using namespace internal;

/// A row of a table: a model without parameters.
struct NamedModel {
  std::string name;
  ModelToRun model;
};

/// What a paper measured.
struct DecodePreset {
  std::string title;
  std::vector<NamedModel> models;
  int64_t beam = 1;
  int64_t batch = 1;
};

/// The model that a TOML file describes, with includes; each side has
/// `vocabulary` words.
ModelToRun configured_model(const std::string& file, Task task, int64_t vocabulary);

/// "wu-2019-table-3": seven rows of the ablation of Wu et al. 2019, beam 4,
/// batch 256. "wu-2019-table-7": DynamicConv with 1, 3 and 6 decoder layers,
/// one sentence at a time, greedy. `configs`: the folder of configurations.
DecodePreset decode_preset(const std::string& name, const std::string& configs);

}  // namespace seqconv::bench
