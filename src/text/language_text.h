#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/rooted_path.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// The text of a language model, as stored in its folder.
struct LanguageText {
  TextOptions options;
  std::shared_ptr<const TextPipeline> text;
  /// Says whether the training text held symbols outside the vocabulary (or
  /// <unk> itself), so that <unk> has been learned.
  bool knows_unknown = false;
  /// Raw lines for the self-test of load().
  std::vector<std::string> samples;

  /// Learns (or loads, where the options name files) subwords and vocabulary
  /// from the training files and counts their symbols, in one streaming pass;
  /// where nothing is left to be learned, there may be no files.
  /// UsageError for contradictory options and for a translation model's
  /// dictionaries; Error with file and line for bad text, and for a given
  /// dictionary that lacks half of the text or more ("wrong dictionary for this
  /// text"); a text's own <unk> does not count there.
  static LanguageText create(const TextOptions& options, const std::vector<TextSource>& files);

  /// The text of dictionaries and subwords that the options name; Error when they do
  /// not name all. It has no samples.
  static LanguageText given(const TextOptions& options);

  /// Writes vocabulary and subword files into `folder` and returns the "text"
  /// object of config.json: the options that matter, whether <unk> is known,
  /// and "side" with the names of the files and, as a self-test, a few raw
  /// samples with their ids.
  Json save(const std::filesystem::path& folder) const;

  /// Reads what save() wrote and re-encodes the samples; Error when one id
  /// differs ("wrong vocabulary for this model"), and for the text of a
  /// translation model. File names in `text` must stay inside `folder`.
  static LanguageText load(const RootedPath& folder, const Json& text);
};

/// Tells what makes two texts turn lines into other ids, or ids into other
/// lines, as for translation models; whether <unk> was learned too.
std::string difference(const LanguageText& a, const LanguageText& b);

/// Error when `ids`, the ids of `line`, hold <unk> and the model has never seen
/// it; names the line's first unknown symbol, behind `where` ("file:line", or
/// "" when the caller says it).
void check_known(
    const LanguageText& text,
    std::string_view line,
    const std::vector<int32_t>& ids,
    const std::string& where);

}  // namespace seqconv::internal
