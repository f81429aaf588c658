#pragma once

#include <memory>
#include <ostream>

#include "cli/backend.h"
#include "cli/flags.h"
#include "cli/verbs/verbs.h"
#include "model/model_checkpoints.h"

/// What `seqconv translate` and `seqconv summarise` share: all but what their
/// lines are.
namespace seqconv::internal::cli {

struct TranslateFlags {
  TranslateArguments arguments;
  std::string checkpoint = kBestCheckpoint;
  BackendFlags backend;
  std::unique_ptr<FlagVisitor> search;
  bool sample = false;
  SamplingOptions sampling_options;
  std::unique_ptr<FlagVisitor> sampling;
  CLI::Option* seed = nullptr;
  CLI::Option* buffer = nullptr;
  CLI::Option* shortlist = nullptr;
  CLI::Option* logits_memory = nullptr;
  std::string shard_text;
  CLI::Option* shard = nullptr;
};

/// Adds the flags of models, search, sampling, speed and memory, and those of
/// input and output that both verbs have.
void add_translation_flags(CLI::App& verb, TranslateFlags& flags);

/// Checks what was given, and runs; UsageError for flags that contradict each
/// other.
void run_translation(TranslateFlags& flags, std::ostream& out);

}  // namespace seqconv::internal::cli
