#include "cli/verbs/input_format.h"

namespace seqconv::internal::verbs {
namespace {

/// The key of a document, or its first part, that results must not replace.
bool replaces_document(const std::string& key, const InputFormat& input) {
  switch (input.format) {
    case TextFormat::kText:
      return key == "text";
    case TextFormat::kJson:
      return key == input.document_key ||
          key == input.document_key.substr(0, input.document_key.find('.'));
    case TextFormat::kStory:
      return key == "id" || key == "article" || key == "highlights";
  }
  fail("unknown format of input ", static_cast<int>(input.format));
}

/// UsageError where flags of summarising contradict the format of its input.
void check_input(const SummaryOptions& summary, const InputFormat& input) {
  const bool json = input.format == TextFormat::kJson;
  const bool story = input.format == TextFormat::kStory;
  const std::string_view name = enum_name(input.format);
  if (json && input.document_key.empty())
    fail_usage("--source-key must name the document in a JSON object, as the model was not trained "
               "on any");
  if (!json && !summary.source_key.empty())
    fail_usage("--source-key is for JSON, but the input format is ", name);
  if (story && summary.stories.empty())
    fail_usage("--stories must name the folder of the stories that the input lists; with "
               "--input-format text the input is documents");
  if (!story && !summary.stories.empty())
    fail_usage("--stories is for story files, but the input format is ", name);
  if (summary.summary_key.empty() || replaces_document(summary.summary_key, input))
    fail_usage(
        "--summary-key must name a field of its own, but '",
        summary.summary_key,
        "' would replace the document");
  if (summary.summary_key == "error" || summary.summary_key == "line")
    fail_usage(
        "--summary-key must not be '",
        summary.summary_key,
        "', which says of a document that it failed");
}

}  // namespace

InputFormat input_format(const TranslateArguments& arguments, const DocumentOptions& trained) {
  if (!arguments.summary)
    return {arguments.json_input ? TextFormat::kJson : TextFormat::kText};
  const SummaryOptions& summary = *arguments.summary;
  InputFormat input{
      summary.input_format.value_or(trained.format),
      summary.source_key,
      summary.stories,
      arguments.links,
      /*summaries=*/true};
  if (input.format == TextFormat::kJson && input.document_key.empty())
    input.document_key = trained.source_key;
  check_input(summary, input);
  if (summary.summary_key != SummaryOptions().summary_key &&
      output_format(arguments, input) == OutputFormat::kText)
    fail_usage("--summary-key is for JSON, but --format is text");
  return input;
}

OutputFormat output_format(const TranslateArguments& arguments, const InputFormat& input) {
  if (!arguments.summary)
    return arguments.format;
  return arguments.summary->format.value_or(
      input.format == TextFormat::kJson ? OutputFormat::kJson : OutputFormat::kText);
}

}  // namespace seqconv::internal::verbs
