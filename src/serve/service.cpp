#include "serve/service.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_texts.h"
#include "serve/alignments_json.h"
#include "serve/answers.h"
#include "serve/detect.h"
#include "serve/inspection_json.h"
#include "serve/languages.h"

namespace seqconv::internal {
namespace {

constexpr size_t kMostInspected = 100;   // symbols of a sentence
constexpr int64_t kMostInspections = 8;  // answers, of some MB each, that clients have not read

std::vector<ServedModel> served_models(const ServeOptions& options) {
  std::vector<ServedModel> models;
  for (const std::string& text : options.model)
    models.push_back(read_served_model(text));
  for (const std::string& text : options.terminology)
    add_terminology(text, models);
  for (const std::string& text : options.language_model)
    models.push_back(read_served_language_model(text));
  return models;
}

ModelsOptions models_options(const ServeOptions& options) {
  return {
      .runtime =
          {.threads = options.threads,
           .compute = options.compute_type,
           .follow_links = options.follow_links,
           .max_wait_ms = options.max_wait_ms},
      .keep_seconds = options.keep_minutes * 60,
      .memory_bytes = options.memory_mb << 20};
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

bool is_same(const std::string& a, std::string_view b) {
  return normal_code(a) == normal_code(b);
}

}  // namespace

/// A call, and what became of it so far.
struct Service::Translation {
  TranslateCall call;
  Json detected = Json::array();
  std::vector<std::string> sources{};  // of each text
  std::shared_ptr<TranslationJob> job{};
};

Service::Service(const ServeOptions& options, Metrics& metrics, Post post)
    : options_(options),
      metrics_(metrics),
      post_(std::move(post)),
      models_(served_models(options), models_options(options)) {}

bool Service::has_language_models() const {
  return std::ranges::any_of(models_.served(), &ServedModel::is_language_model);
}

std::vector<Gauge> Service::gauges() const {
  std::vector<Gauge> gauges;
  const std::vector<Models::State> states = models_.states();
  const std::vector<Models::State> inspected = models_.states(Use::kInspect);
  for (size_t i = 0; i < states.size(); ++i) {
    const std::string label = label_text("model", models_.served()[i].name());
    const auto add = [&](const char* name, int64_t value) {
      gauges.push_back({name, label, static_cast<double>(value)});
    };
    add("seqconv_model_open", states[i].is_open ? 1 : 0);
    add("seqconv_model_bytes", states[i].bytes + inspected[i].bytes);
    add("seqconv_model_openings_total", states[i].times_opened + inspected[i].times_opened);
  }
  return gauges;
}

/// Codes that are translated from, to `target` if one is given.
std::vector<std::string> Service::sources(std::string_view target) const {
  std::vector<std::string> codes;
  for (const ServedModel& model : models_.served())
    if (!model.is_language_model() && (target.empty() || is_same(model.target, target)) &&
        std::ranges::find(codes, model.source) == codes.end())
      codes.push_back(model.source);
  return codes;
}

HttpAnswer Service::detect(const Json& parameters) const {
  TranslateCall call;
  read_texts(parameters, options_, call);
  Json lists = Json::array();
  for (const std::string& text : call.texts) {
    Json& list = lists.emplace_back(Json::array());
    for (const DetectedLanguage& found : detect_language(text, sources(), false))
      list.push_back({{"confidence", found.confidence}, {"language", found.language}});
  }
  return json_answer(call.is_list ? lists : lists[0]);
}

void Service::translate(const Exchange& exchange, const Json& parameters, bool as_stream) {
  const auto own = std::make_shared<Translation>();
  own->call = read_translate_call(parameters, options_);
  if (own->call.texts.empty()) {  // its languages are wrong all the same, if they are
    Json none = Json::array();
    model_between(source_of(own->call, "", none), own->call.target);
  }
  std::vector<JobText> texts;
  for (const std::string& text : own->call.texts)
    texts.push_back(job_text(own->call, text, *own));
  JobHooks hooks{.post = post_};
  if (as_stream)
    hooks.part = [exchange](size_t text, std::string part) {
      exchange->write(
          event_text("part", json_line({{"index", text}, {"translatedText", std::move(part)}})));
    };
  own->job = std::make_shared<TranslationJob>(
      std::move(texts),
      JobWishes{own->call.alternatives, own->call.wants_alignments, own->call.terms},
      milliseconds(options_.timeout_seconds),
      std::move(hooks));
  admit(*own);
  exchange->on_gone([weak = std::weak_ptr(own->job)] {
    if (const auto still = weak.lock())
      still->cancel();
  });
  if (as_stream)
    exchange->begin(event_stream());
  own->job->begin([this, exchange, own, as_stream, under_way = under_way()]() mutable {
    end(exchange, *own, as_stream);
    {
      const std::lock_guard lock(mutex_);
      waiting_ -= own->job->sentences();
    }
    own->job = nullptr;
    under_way = nullptr;
  });
}

JobText Service::job_text(
    const TranslateCall& call, const std::string& text, Translation& translation) {
  const std::string source = source_of(call, text, translation.detected);
  const size_t number = model_between(source, call.target);
  translation.sources.push_back(models_.served()[number].source);
  JobText own;
  try {
    own.document = std::make_unique<Document>(
        text, call.format, source, static_cast<size_t>(options_.max_sentence_characters));
  } catch (const Error& error) {
    throw CallError(400, error.what());
  }
  if (!own.document->sentences().empty())
    own.model = models_.open(number);
  return own;
}

std::string Service::source_of(
    const TranslateCall& call, const std::string& text, Json& detected) const {
  const std::vector<std::string> allowed = sources(call.target);
  if (allowed.empty())
    throw CallError(400, call.target + " is not supported");
  if (call.source != "auto")
    return call.source;
  const DetectedLanguage found =
      detect_language(text, allowed, call.format == DocumentFormat::kHtml)[0];
  detected.push_back({{"confidence", found.confidence}, {"language", found.language}});
  return found.language;
}

size_t Service::model_between(const std::string& source, const std::string& target) const {
  if (const auto number = models_.find(source, target))
    return *number;
  const std::vector<std::string> known = sources();
  const bool is_known =
      std::ranges::any_of(known, [&](const std::string& code) { return is_same(code, source); });
  throw CallError(
      400,
      is_known ? target + " is not available as a target of " + source
               : source + " is not supported");
}

/// CallError 429 where too many sentences wait already.
void Service::admit(const Translation& translation) {
  const int64_t own = translation.job->sentences();
  const std::lock_guard lock(mutex_);
  if (waiting_ > 0 && waiting_ + own > options_.max_waiting)
    throw CallError(429, "Too many requests wait", 1);
  waiting_ += own;
}

std::shared_ptr<void> Service::under_way() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
  return {nullptr, [this](void*) {
            const std::lock_guard lock(mutex_);
            if (--under_way_ == 0)
              ended_.notify_all();
          }};
}

void Service::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return under_way_ == 0; });
}

void Service::end(const Exchange& exchange, const Translation& translation, bool as_stream) {
  try {
    const Json json = outcome(translation);
    if (!as_stream)
      return exchange->answer(json_answer(json));
    exchange->write(event_text("done", json_line(json)));
  } catch (...) {
    HttpAnswer fault = answer_for_fault();
    if (!as_stream)
      return exchange->answer(std::move(fault));
    exchange->write(event_text("error", fault.body));
  }
  exchange->end();
}

Json Service::outcome(const Translation& translation) {
  const TranslateCall& call = translation.call;
  const JobOutcome outcome = translation.job->outcome();
  Json json = Json::object();
  const auto add = [&](const char* name, const Json& list) {
    json[name] = call.is_list ? list : list.at(0);
  };
  if (call.source == "auto")
    add("detectedLanguage", translation.detected);
  if (call.alternatives > 0)
    add("alternatives", outcome.alternatives);
  if (call.wants_notes)
    add("notes", outcome.notes);
  add("translatedText", outcome.texts);
  if (call.wants_alignments) {
    Json lists = Json::array();
    for (size_t i = 0; i < call.texts.size(); ++i)
      lists.push_back(alignments_json(outcome.alignments[i], call.texts[i], outcome.texts[i]));
    add("alignments", lists);
  }
  if (!translation.sources.empty())
    metrics_.add_translation(
        translation.sources[0], call.target, translation.job->sentences(), call.characters);
  return json;
}

void Service::inspect(const Exchange& exchange, const Json& parameters) {
  const TranslateCall call = read_translate_call(parameters, options_);
  if (call.is_list || call.format != DocumentFormat::kText)
    throw CallError(400, "Invalid request: q must be one sentence of text");
  Json detected = Json::array();
  const size_t number = model_between(source_of(call, call.texts[0], detected), call.target);
  CancelToken cancel;
  exchange->on_gone([cancel, admitted = admit_inspection()] { cancel.cancel(); });
  const auto translate = [&](TranslationRequest request) {
    request.timeout = milliseconds(options_.timeout_seconds);
    const Models::Opened model = models_.open(number);
    TranslationResult result = model->translator->translate({std::move(request)}, cancel).at(0);
    if (!result.ok())
      fail_as(result);
    return result;
  };
  // Nothing is held while the other is opened: there may be memory for one alone.
  Models::Opened model = models_.open(number, Use::kInspect);
  const std::weak_ptr still = model;
  const auto description = model->prober->description();
  model = nullptr;
  TranslatedSentence sentence = SentenceProber::translated(
      description->text, {call.texts[0], "q", kMostInspected, /*is_cut=*/true}, translate);
  model = still.lock();
  if (model == nullptr)
    model = models_.open(number, Use::kInspect);
  Json json = Json::object();
  if (call.source == "auto")
    json["detectedLanguage"] = detected[0];
  json.update(inspection_json(model->prober->probe(std::move(sentence))));
  exchange->answer(json_answer(json));
}

/// A place among the inspections whose answer is not sent, until it is gone. CallError 429 where
/// there is none.
std::shared_ptr<void> Service::admit_inspection() {
  const std::lock_guard lock(mutex_);
  if (inspections_ >= kMostInspections)
    throw CallError(429, "Too many inspections wait", 1);
  ++inspections_;
  return {nullptr, [this](void*) {
            const std::lock_guard lock(mutex_);
            --inspections_;
          }};
}

void Service::generate(const Exchange& exchange, const Json& parameters) {
  GenerateCall call = read_generate_call(parameters, options_);
  std::string name = call.model;
  for (const ServedModel& model : models_.served())
    if (name.empty() && model.is_language_model())
      name = model.source;
  const auto number = models_.find(name, "");
  if (!number)
    throw CallError(400, name.empty() ? "No language model is served" : name + " is not served");
  const Models::Opened model = models_.open(*number);
  call.request.timeout = milliseconds(options_.timeout_seconds);
  CancelToken cancel;
  exchange->on_gone([cancel] { cancel.cancel(); });
  if (call.wants_stream)
    exchange->begin(event_stream());
  const GenerationResult result = model->generator->generate(
      call.request,
      [&](std::string_view text) {
        if (call.wants_stream)
          exchange->write(event_text("part", json_line({{"text", text}})));
        return true;
      },
      cancel);
  const HttpAnswer answer = result.ok() || result.status == Status::kTimedOut
      ? json_answer({{"text", result.text}, {"tokens", result.tokens.size()}})
      : error_answer(result.status == Status::kInvalid ? 400 : 503, result.error);
  if (!call.wants_stream)
    return exchange->answer(answer);
  exchange->write(event_text(answer.status == 200 ? "done" : "error", answer.body));
  exchange->end();
}

}  // namespace seqconv::internal
