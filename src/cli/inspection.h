#pragma once

#include <string>
#include <vector>

#include "cli/report/runs.h"
#include "runtime/probe.h"

/// The parts of an inspected model's page, as HTML.
namespace seqconv::internal::cli {

/// The symbols of the sentence that a model was probed with.
struct ProbedSymbols {
  bool given = false;                  ///< whether there is a sentence
  std::vector<std::string> source{};   ///< as the encoder reads them
  std::vector<std::string> read{};     ///< as the decoder reads them
  std::vector<std::string> written{};  ///< what it predicts at each of them
};

/// What an inspected model is and was.
struct Inspected {
  ModelProbe probe{};
  ProbedSymbols symbols{};
  std::vector<std::pair<std::string, std::string>> facts{};  ///< name, value
  std::vector<std::string> notes{};
  std::vector<report::Run> runs{};
};

/// The page's body under `title`.
std::string inspection_body(const std::string& title, const Inspected& model);

}  // namespace seqconv::internal::cli
