#include "serve/models.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "serve/answers.h"
#include "serve/languages.h"
#include "text/terminology.h"

namespace seqconv::internal {
namespace {

/// Bytes of the model's file, which is mapped; 0 where there is none to see.
int64_t file_bytes(const std::string& folder) {
  std::error_code error;
  const auto size =
      std::filesystem::file_size(std::filesystem::path(folder) / "model.safetensors", error);
  return error ? 0 : static_cast<int64_t>(size);
}

/// Tells whether a model is one between two languages, whose codes may be written otherwise.
bool translates(const ServedModel& model, std::string_view source, std::string_view target) {
  return !model.is_language_model() && normal_code(model.source) == normal_code(source) &&
      normal_code(model.target) == normal_code(target);
}

RuntimeOptions with_terms(RuntimeOptions options, const std::string& terminology) {
  options.terminology = terminology;
  return options;
}

}  // namespace

int64_t OpenModel::weight_bytes() const {
  if (prober)
    return prober->weight_bytes();
  return translator ? translator->info().weight_bytes : generator->info().weight_bytes;
}

namespace {

/// Reads "SOURCE-TARGET=VALUE"; UsageError for anything else, by an example.
ServedModel read_pair(const std::string& text, const char* example) {
  const size_t equals = text.find('=');
  const std::string pair = text.substr(0, equals);
  const size_t colon = pair.find(':');
  const size_t middle = colon != pair.npos ? colon : pair.find('-');
  if (equals == text.npos || equals + 1 == text.size() || middle == pair.npos || middle == 0 ||
      middle + 1 == pair.size())
    fail_usage(example, ", but got '", text, "'");
  return {pair.substr(0, middle), pair.substr(middle + 1), text.substr(equals + 1)};
}

}  // namespace

ServedModel read_served_model(const std::string& text) {
  return read_pair(text, "--model must be SOURCE-TARGET=DIR, such as de-en=runs/mine");
}

void add_terminology(const std::string& text, std::vector<ServedModel>& models) {
  const ServedModel given =
      read_pair(text, "--terminology must be SOURCE-TARGET=FILE, such as de-en=terms.tsv");
  const auto model = std::ranges::find_if(models, [&](const ServedModel& other) {
    return translates(other, given.source, given.target);
  });
  if (model == models.end())
    fail_usage("--terminology must be for a --model, but there is none of ", given.name());
  if (!model->terminology.empty())
    fail_usage("--terminology must be given once for ", given.name());
  Terminology::load(given.folder);
  model->terminology = given.folder;
}

ServedModel read_served_language_model(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size())
    fail_usage("--language-model must be NAME=DIR, such as book=runs/book, but got '", text, "'");
  return {text.substr(0, equals), "", text.substr(equals + 1)};
}

Models::Models(std::vector<ServedModel> served, const ModelsOptions& options)
    : served_(std::move(served)), options_(options) {
  for (size_t i = 0; i < 2 * served_.size(); ++i)
    places_.push_back(std::make_unique<Place>());
  for (size_t i = 0; i < served_.size(); ++i) {
    if (find(served_[i].source, served_[i].target) != i)
      fail_usage("a model must be named once, but got ", served_[i].name(), " twice");
    if (!std::filesystem::exists(std::filesystem::path(served_[i].folder) / "config.json"))
      fail(
          served_[i].name(),
          " must be a model folder, but '",
          served_[i].folder,
          "' holds no config.json");
  }
}

std::optional<size_t> Models::find(std::string_view source, std::string_view target) const {
  const auto found = std::ranges::find_if(served_, [&](const ServedModel& model) {
    return target.empty() ? model.is_language_model() && model.source == source
                          : translates(model, source, target);
  });
  if (found == served_.end())
    return std::nullopt;
  return static_cast<size_t>(found - served_.begin());
}

size_t Models::place_number(size_t number, Use use) const {
  return number + (use == Use::kInspect ? served_.size() : 0);
}

Models::Opened Models::open(size_t number, Use use) {
  Place& place = *places_[place_number(number, use)];
  const std::lock_guard alone(place.opening);
  std::vector<Opened> closed;  // outside of the lock
  Opened before;
  int64_t reloads = 0;
  {
    const std::lock_guard lock(mutex_);
    place.used = Clock::now();
    if (place.model && place.reloads == reloads_)
      return place.model;
    reloads = reloads_;
    if (options_.memory_bytes > 0)  // there may be no room for both
      closed.push_back(std::exchange(place.model, nullptr));
    before = place.model;
    for (Opened& other : make_room(std::max(place.bytes, file_bytes(served_[number].folder))))
      closed.push_back(std::move(other));
  }
  closed.clear();
  Opened model = open_or_keep(number, use, before);
  const int64_t bytes = file_bytes(served_[number].folder) + model->weight_bytes();
  const std::lock_guard lock(mutex_);
  place.used = Clock::now();
  if (model != before) {
    place.bytes = bytes;
    ++place.times_opened;
  }
  place.reloads = reloads;
  place.model = model;
  // Its weights may be larger than its file told.
  while (options_.memory_bytes > 0 && open_bytes() > options_.memory_bytes) {
    closed.push_back(close_oldest());
    if (closed.back() == nullptr)
      break;
  }
  return model;
}

/// A model that is opened anew stays as it is where that fails: requests go on.
Models::Opened Models::open_or_keep(size_t number, Use use, const Opened& before) const {
  try {
    return open_now(number, use);
  } catch (const std::exception& error) {
    if (!before)
      throw;
    log_line(LogLevel::kError, concat(served_[number].name(), " stays as it was: ", error.what()));
    return before;
  }
}

Models::Opened Models::open_now(size_t number, Use use) const {
  const ServedModel& served = served_[number];
  const auto model = std::make_shared<OpenModel>();
  if (use == Use::kInspect)
    model->prober.emplace(find_model(RootedPath(
        served.folder, options_.runtime.follow_links ? Links::kAnywhere : Links::kInside)));
  else if (served.is_language_model())
    model->generator.emplace(served.folder, options_.runtime);
  else
    model->translator.emplace(served.folder, with_terms(options_.runtime, served.terminology));
  return model;
}

int64_t Models::open_bytes() const {
  int64_t bytes = 0;
  for (const auto& place : places_)
    if (place->model)
      bytes += place->bytes;
  return bytes;
}

/// Takes the model that has been idle longest out of its place; null: all are in use.
Models::Opened Models::close_oldest() {
  Place* oldest = nullptr;
  for (const auto& place : places_)
    if (place->model && place->model.use_count() == 1 &&
        (oldest == nullptr || place->used < oldest->used))
      oldest = place.get();
  return oldest == nullptr ? nullptr : std::exchange(oldest->model, nullptr);
}

/// Closes idle models for it, and gives them to the caller, who lets go of them.
std::vector<Models::Opened> Models::make_room(int64_t bytes) {
  std::vector<Opened> closed;
  while (options_.memory_bytes > 0 && open_bytes() + bytes > options_.memory_bytes) {
    if (open_bytes() == 0)
      break;  // it alone exceeds the limit
    closed.push_back(close_oldest());
    if (closed.back() == nullptr)
      throw CallError(503, "There is no memory for another model now", 1);
  }
  return closed;
}

void Models::reload() {
  const std::lock_guard lock(mutex_);
  ++reloads_;
}

void Models::close_idle() {
  std::vector<Opened> closed;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = *places_[i];
    double keep = options_.keep_seconds;
    if (i >= served_.size())
      keep = keep > 0 ? std::min(keep, options_.keep_inspected_seconds)
                      : options_.keep_inspected_seconds;
    const bool is_idle = place.model && place.model.use_count() == 1 && keep > 0 &&
        now - place.used > std::chrono::duration<double>(keep);
    if (is_idle)
      closed.push_back(std::exchange(place.model, nullptr));
  }
}

std::vector<Models::State> Models::states(Use use) const {
  const std::lock_guard lock(mutex_);
  std::vector<State> states;
  for (size_t i = 0; i < served_.size(); ++i) {
    const Place& place = *places_[place_number(i, use)];
    states.push_back({place.model != nullptr, place.model ? place.bytes : 0, place.times_opened});
  }
  return states;
}

}  // namespace seqconv::internal
