#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/corpus/line_encoder.h"
#include "text/corpus/samples.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// A corpus of a run as samples of ids, and what to say of it.
struct PreparedCorpus {
  std::shared_ptr<const SampleSource> samples;
  std::string summary;
  std::vector<std::string> warnings{};
};

/// The corpora of a run.
struct PreparedData {
  PreparedCorpus train;
  std::optional<PreparedCorpus> valid;
};

/// How a corpus comes into being. `stem` is a path without an extension.
struct CorpusRecipe {
  /// Encodes the text, writes it beside `stem` and returns a report.
  std::function<Json(const std::filesystem::path& stem)> write;
  /// Opens what write() wrote, with its report.
  std::function<PreparedCorpus(const std::filesystem::path& stem, const Json& report)> open;
};

/// Those of a run.
struct CorpusRecipes {
  CorpusRecipe train;
  std::optional<CorpusRecipe> valid;
};

/// Logs summaries and warnings.
void report_data(const PreparedData& data);

/// Warns where a hundredth of the validation samples or more is training data too: their loss
/// tells nothing of other text.
void warn_of_shared_samples(const PreparedData& data);

/// Encodes training and validation text into `folder`, unless that was done
/// before with the same `inputs`: checksums of the text files and of whatever
/// else decides the ids. folder/stamp.json says so, with a checksum of each
/// file and of itself; damaged files are encoded again, with a warning. Stops
/// with Interrupted when a signal asks for it.
PreparedData prepare_data(
    const std::filesystem::path& folder, const Json& inputs, const CorpusRecipes& recipes);

/// Opens what another process, which has checked the files, prepared in
/// `folder`; `stamp` is the text of its folder/stamp.json. Nothing is written:
/// Error for what cannot be opened.
PreparedData open_prepared_data(
    const std::filesystem::path& folder, const std::string& stamp, const CorpusRecipes& recipes);

/// Stops with Interrupted when a signal asks for it; for use between two lines.
void stop_preparing_if_asked();

/// Error naming the configuration's key whose files have changed.
void check_same_inputs(const Json& stored, const Json& present);

}  // namespace seqconv::internal
