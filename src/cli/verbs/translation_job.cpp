#include "cli/verbs/translation_job.h"

#include "base/checksum.h"
#include "base/options.h"
#include "cli/verbs/input_format.h"
#include "cli/verbs/part_input.h"
#include "model/model_writing.h"
#include "seqconv/version.h"

namespace seqconv::internal::verbs {
namespace {

std::string content_of(const RootedPath& file) {
  return checksum_text(file_checksum(file));
}

/// The files of a model that are read to translate.
Json describe_model(const ModelFiles& files) {
  Json model = {{"parameters", content_of(files.parameters)}};
  for (const std::filesystem::path& file : description_files(files))
    model[file.filename().string()] = content_of(file);
  return model;
}

Json describe_summary(const TranslateArguments& arguments, const InputFormat& input) {
  return {
      {"source_key", input.document_key},
      {"stories", input.stories},
      {"summary_key", arguments.summary->summary_key}};
}

}  // namespace

Json describe_job(
    const TranslateArguments& arguments,
    const Translator& translator,
    const std::vector<ModelFiles>& models,
    const InputFormat& input) {
  const TranslationSystem& system = translator.system();
  Json job = {
      {"seqconv", SEQCONV_VERSION},
      {"parts", arguments.part.count},
      {"input", fingerprint(arguments.input)}};
  job["models"] = Json::array();
  for (const ModelFiles& model : models)
    job["models"].push_back(describe_model(model));
  job["backend"] = system.backend->name();
  if (!arguments.shortlist.empty())
    job["shortlist"] = content_of(arguments.shortlist);
  if (!arguments.terminology.empty())
    job["terminology"] = content_of(arguments.terminology);
  if (const int64_t most = translator.options().max_source_tokens; most > 0)
    job["max_source_tokens"] = most;
  job["search"] = write_options(translator.options().search);
  if (arguments.ban_unknown)
    job["ban_unknown"] = true;
  if (arguments.alignments != Alignments::kNone)
    job["alignments"] = std::string(enum_name(arguments.alignments));
  if (arguments.sampling) {
    job["sampling"] = write_options(*arguments.sampling);
    job["seed"] = arguments.seed;
  }
  job["input_format"] = std::string(enum_name(input.format));
  job["format"] = std::string(enum_name(output_format(arguments, input)));
  if (arguments.summary)
    job["summary"] = describe_summary(arguments, input);
  return job;
}

}  // namespace seqconv::internal::verbs
