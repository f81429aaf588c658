#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/rooted_path.h"
#include "pipeline/shortlist.h"
#include "pipeline/system.h"
#include "search/sample.h"
#include "search/search.h"

/// The work of the verbs that run a model, whatever runs it, or learn something
/// for that: files and streams in and out. They throw what the layers below
/// throw.
namespace seqconv::internal {

enum class OutputFormat { kText, kJson };
template <>
struct EnumNames<OutputFormat> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, OutputFormat>>(
      {{"text", OutputFormat::kText}, {"json", OutputFormat::kJson}});
};

template <>
struct EnumNames<Alignments> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Alignments>>(
      {{"none", Alignments::kNone},
       {"pairs", Alignments::kPairs},
       {"shares", Alignments::kShares}});
};

/// Says what summarising does otherwise than translating.
struct SummaryOptions {
  /// Says what the input holds; nothing: what the model was trained on.
  std::optional<TextFormat> input_format;
  std::string source_key;                    ///< of documents in JSON; "": as in training
  std::string summary_key = "summary_text";  ///< of summaries in JSON
  std::vector<std::string> stories;          ///< folders of the stories
  /// The format of the output; nothing: JSON where the input is JSON, else
  /// text.
  std::optional<OutputFormat> format;
};

/// One of the parts, 1 <= index <= count, that an input is shared out in.
struct InputPart {
  int64_t index = 1;
  int64_t count = 1;
};

struct TranslateArguments {
  std::vector<std::string> models;
  Links links = Links::kInside;  ///< of models, and of the folders of stories
  DecodingOptions search;
  std::vector<std::string> search_given;  ///< keys set on the command line;
                                          ///< the model's defaults fill others
  /// The search that was asked for: the values of these keys alone.
  SearchOptions given_search() const;
  /// Translations are drawn, not searched for, where given.
  std::optional<SamplingOptions> sampling;
  bool ban_unknown = false;  ///< <unk> comes in prefixes alone
  OptionNames names{""};     ///< of search and sampling, in messages
  int64_t seed = 1;          ///< of the draws, with the number of a line
  std::string terminology;   ///< a file of terms (text/terminology.h); "": none
  std::string shortlist;     ///< a file of words to choose from; "": all words
  int64_t batch_tokens = 4096;
  int64_t buffer_lines = 1024;
  int64_t workers = 1;  ///< batches translated at a time
  OutputFormat format = OutputFormat::kText;
  std::string input;  ///< a file of text or binarised; "": the stream
  /// A file that is not there yet; "": the stream. Then `input` must be a file
  /// of text, of which `part` is translated; the last part that is done joins
  /// them, and a run that was interrupted is gone on with.
  std::string output{};
  InputPart part{};
  Alignments alignments = Alignments::kNone;
  bool json_input = false;  ///< objects with "text" and "target_prefix"
  bool strict = false;      ///< the first line that fails ends the run
  bool stats = false;       ///< speed on standard error at the end
  /// Bytes of logits that a batch may have at a time, for the stats; 0: all.
  int64_t logits_megabytes = 0;
  int64_t max_source_tokens = 0;  ///< longer lines are cut; 0: as the model says
  /// Summaries are wanted, where given: format and json_input are not read.
  std::optional<SummaryOptions> summary;
};

struct ShortlistArguments {
  RootedPath model;
  std::vector<std::string> sources;  ///< training text, and its translation
  std::vector<std::string> targets;
  std::string output;
  ShortlistOptions options;
  OptionNames names{""};  ///< of the options, in messages
};

struct ScoreArguments {
  RootedPath model;
  std::string source;
  std::string target;
  int64_t batch_tokens = 4096;
  int64_t workers = 1;  ///< batches scored at a time
  bool strict = false;
};

struct PerplexityArguments {
  RootedPath model;
  std::string input;           ///< a file of text or binarised; "": the stream
  int64_t block = 0;           ///< tokens; 0 = as it was trained
  int64_t context_window = 0;  ///< tokens of a block that are read again
  int64_t batch_tokens = 4096;
  int64_t workers = 1;  ///< batches scored at a time
  OutputFormat format = OutputFormat::kText;
  bool strict = false;
  OptionNames names{""};  ///< of block and context_window, in messages
};

struct GenerateArguments {
  RootedPath model;
  std::string prompt;
  int64_t length = 200;  ///< tokens
  int64_t seed = 1;
  SamplingOptions sampling;
  OptionNames names{""};  ///< of sampling and length, in messages
  int64_t workers = 1;    ///< threads that share the work at a token
  bool stats = false;     ///< speed on standard error at the end
};

namespace verbs {

void translate(
    const TranslateArguments& arguments,
    const BackendOpener& opener,
    std::istream& in,
    std::ostream& out);
void shortlist(const ShortlistArguments& arguments);
void score(const ScoreArguments& arguments, const BackendOpener& opener, std::ostream& out);
void perplexity(
    const PerplexityArguments& arguments,
    const BackendOpener& opener,
    std::istream& in,
    std::ostream& out);
void generate(const GenerateArguments& arguments, const BackendOpener& opener, std::ostream& out);

}  // namespace verbs
}  // namespace seqconv::internal
