#include "runtime/api/model.h"

#include "base/threads.h"
#include "runtime/api/arguments.h"
#include "runtime/runtime_backends.h"

namespace api = seqconv::internal;

namespace {

api::RuntimeBackends backends_of(const seqconv::RuntimeOptions& options) {
  return api::RuntimeBackends(options.compute, options.logits_bytes);
}

bool is_language_model(const api::RootedPath& folder) {
  return api::task_of_model(api::find_model(folder).folder) == api::Task::kLanguageModel;
}

api::TranslatorOptions translator_options(
    const seqconv::RuntimeOptions& options, const api::DecodingOptions& search, int64_t workers) {
  api::TranslatorOptions result;
  result.search = search;
  result.batch_tokens = options.batch_tokens;
  result.workers = workers;
  result.max_source_tokens = options.max_source_tokens;
  return result;
}

/// "float32" of "runtime, float32".
std::string types_of(const std::string& backend) {
  constexpr std::string_view kBegin = "runtime, ";
  return backend.substr(backend.starts_with(kBegin) ? kBegin.size() : 0);
}

}  // namespace

seqconv_model::seqconv_model(
    const std::vector<std::string>& folders, const seqconv_runtime_options& given) {
  const seqconv::RuntimeOptions options = api::read_options(given);
  const auto links = options.follow_links ? api::Links::kAnywhere : api::Links::kInside;
  for (const std::string& folder : folders)
    folders_.emplace_back(folder, links);
  together_ = {
      .batch_tokens = options.batch_tokens,
      .workers = options.threads > 0 ? options.threads : api::thread_count(0)};
  const bool detects = given.task == SEQCONV_TASK_ANY && !folders_.empty();
  if (given.task == SEQCONV_TASK_LANGUAGE_MODEL || (detects && is_language_model(folders_[0])))
    open_language_model(options);
  else
    open_translation(options);
  info_.size = sizeof(info_);
  info_.threads = together_.workers;
  info_.compute = compute_.c_str();
  api::Answerer alone = together_;
  alone.workers = 1;
  alone.translator = alone_ ? &*alone_ : nullptr;
  queue_ = std::make_unique<api::RequestQueue>(alone, together_.workers, options);
}

void seqconv_model::open_translation(const seqconv::RuntimeOptions& options) {
  translation_ = api::open_translation(
      folders_, backends_of(options), {options.shortlist, options.terminology});
  translator_.emplace(
      *translation_, translator_options(options, translation_->decoding, together_.workers));
  alone_.emplace(*translation_, translator_options(options, translation_->decoding, 1));
  together_.translator = &*translator_;
  search_ = api::to_c(translation_->decoding);
  compute_ = types_of(translation_->backend->name());
  const api::PositionLimits limits = translation_->backend->limits();
  const api::PositionLimits cut{translation_->text.max_source_tokens, 0};
  info_ = {
      .task = SEQCONV_TASK_TRANSLATION,
      .models = translation_->size.models,
      .parameters = translation_->size.parameters,
      .file_bytes = translation_->size.file_bytes,
      .weight_bytes = translation_->backend->weight_bytes(),
      .source_vocabulary = translation_->text.source->vocabulary().size(),
      .target_vocabulary = translation_->text.target->vocabulary().size(),
      .max_source_tokens = limits.within(cut).within({options.max_source_tokens, 0}).source,
      .max_target_tokens = limits.target,
      .search = &search_};
}

void seqconv_model::open_language_model(const seqconv::RuntimeOptions& options) {
  if (folders_.size() != 1)
    api::fail_option("a language model must be one folder, but got ", folders_.size());
  if (!options.shortlist.empty())
    api::fail_option("a shortlist is for translating alone, but got '", options.shortlist, "'");
  if (!options.terminology.empty())
    api::fail_option("a terminology is for translating alone, but got '", options.terminology, "'");
  if (options.max_source_tokens > 0)
    api::fail_option(
        "max_source_tokens is for translating alone, but got ", options.max_source_tokens);
  language_ = api::open_language_model(folders_[0], backends_of(options));
  together_.language = &*language_;
  compute_ = types_of(language_->backend->name());
  const int64_t most = language_->backend->max_tokens();
  info_ = {
      .task = SEQCONV_TASK_LANGUAGE_MODEL,
      .models = language_->size.models,
      .parameters = language_->size.parameters,
      .file_bytes = language_->size.file_bytes,
      .weight_bytes = language_->backend->weight_bytes(),
      .target_vocabulary = language_->text.text->vocabulary().size(),
      .max_target_tokens = most < std::numeric_limits<int32_t>::max() ? most : 0};
}

void seqconv_model::require(seqconv_task task, const char* call) const {
  if (info_.task != task)
    api::fail_call(
        SEQCONV_TASK_ERROR,
        call,
        task == SEQCONV_TASK_TRANSLATION
            ? " needs a translation model, but this is a language model"
            : " needs a language model, but this one translates");
}

const api::TextPipeline& seqconv_model::text(int32_t side) const {
  if (language_ && side == SEQCONV_TARGET)
    return *language_->text.text;
  if (!translation_ || (side != SEQCONV_SOURCE && side != SEQCONV_TARGET))
    api::fail_option(
        "side must be SEQCONV_SOURCE or SEQCONV_TARGET, the latter for a language model, but got ",
        side);
  return side == SEQCONV_SOURCE ? *translation_->text.source : *translation_->text.target;
}

extern "C" {

seqconv_status seqconv_open(
    const char* const* folders,
    int64_t count,
    const seqconv_runtime_options* options,
    seqconv_model** model) {
  return api::guarded(SEQCONV_MODEL_ERROR, [&] {
    seqconv_model*& place = api::required(model, "model");
    const seqconv_runtime_options defaults = SEQCONV_RUNTIME_OPTIONS_INIT;
    const auto own = api::read_struct(options, defaults, "seqconv_runtime_options");
    if (count < 0 || (folders == nullptr && count > 0))
      api::fail_option("folders must be given, at least 0, but got ", count);
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i)
      names.emplace_back(&api::required(folders[i], "a folder"));
    place = std::make_unique<seqconv_model>(names, own).release();
  });
}

void seqconv_close(seqconv_model* model) {
  delete model;
}

const seqconv_model_info* seqconv_info(const seqconv_model* model) {
  return model == nullptr ? nullptr : &model->info();
}

}  // extern "C"
