#pragma once

#include <string>
#include <vector>

#include "cli/report/runs.h"
#include "runtime/sentence_probe.h"

/// The parts of an inspected model's page, as HTML.
namespace seqconv::internal::cli {

/// What an inspected model is and was.
struct Inspected {
  SentenceProbe sentence{};
  std::vector<std::pair<std::string, std::string>> facts{};  ///< name, value
  std::vector<std::string> notes{};
  std::vector<report::Run> runs{};
};

/// The page's body under `title`.
std::string inspection_body(const std::string& title, const Inspected& model);

}  // namespace seqconv::internal::cli
