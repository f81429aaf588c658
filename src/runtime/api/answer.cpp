#include "runtime/api/answer.h"

#include <algorithm>
#include <numbers>

#include "base/special_ids.h"
#include "base/utf8.h"
#include "pipeline/generator.h"
#include "runtime/api/arguments.h"
#include "text/documents.h"

namespace seqconv::internal {
namespace {

TranslationResult to_result(const TranslationOutcome& outcome, bool is_summary) {
  TranslationResult result = outcome;
  if (std::string note = unknown_note(outcome.symbols, "the text"); result.ok() && !note.empty())
    result.notes.push_back(std::move(note));
  if (is_summary)
    for (Translation& summary : result.translations)
      summary.text = sentence_lines(summary.text);
  return result;
}

/// The text of a request whose caller had enough of it.
TranslationResult partial_result(const std::string& shown) {
  TranslationResult result;
  result.translations.emplace_back().text = shown;
  return result;
}

template <class Wanted>
std::vector<Wanted> wanted_by(const std::vector<Request*>& requests) {
  std::vector<Wanted> all;
  all.reserve(requests.size());
  for (const Request* request : requests)
    all.push_back(std::get<Wanted>(request->wanted()));
  return all;
}

void translate(const Answerer& answerer, Group& group) {
  const std::vector<Request*>& requests = group.requests();
  const auto told = [&](size_t i, const TranslationOutcome& outcome) {
    OwnResult result(no_memory_result());
    try {
      result = make_result(to_result(outcome, requests[i]->is_summary));
    } catch (const std::bad_alloc&) {}
    group.tell(i, std::move(result));
  };
  const auto part = [&](size_t i, const std::string& text) {
    group.tell_part(i, requests[i]->is_summary ? sentence_lines(text) : text);
  };
  const std::vector<TranslationInput> all = wanted_by<TranslationInput>(requests);
  answerer.translator->translate(
      all, {.stop = [&] { return group.stops(); }, .done = told, .part = part});
}

void score(const Answerer& answerer, Group& group) {
  const std::vector<ScoreResult> results = score_requests(
      answerer.translator->system(),
      wanted_by<ScoreRequest>(group.requests()),
      {.batch_tokens = answerer.batch_tokens, .workers = answerer.workers},
      [&] { return group.stops(); });
  for (size_t i = 0; i < results.size(); ++i)
    group.tell(i, make_result(results[i]));
}

/// The text of a generation as it comes, and what ends it.
class Generation {
 public:
  Generation(const Answerer& answerer, Group& group, size_t number, GenerationResult& result)
      : system_(*answerer.language),
        workers_(answerer.workers),
        group_(group),
        number_(number),
        result_(result) {}

  void run(const GenerationRequest& wanted) {
    const size_t at = find_invalid_utf8(wanted.prompt);
    SEQCONV_CHECK(at == std::string_view::npos, "a prompt must be UTF-8, but is not at byte ", at);
    refuse_both(wanted.prompt, "prompt", wanted.prompt_tokens.has_value(), "prompt_tokens");
    validate(wanted.sampling, "sampling");
    GenerationOptions options{
        .length = wanted.length,
        .sampling = wanted.sampling,
        .show_prompt = false,
        .stop = [&] { return stops(); },
        .workers = workers_,
        .token = [&](int32_t id, double score) { add_token(id, score); }};
    if (wanted.prompt_tokens)
      options.prompt = prompt_ids(*wanted.prompt_tokens);
    const GenerationReport report =
        generate_text(system_, wanted.prompt, options, [&](const std::string& text) { add(text); });
    result_.log_probability = report.log2_probability * std::numbers::ln2;
    if (std::string note =
            unknown_note({report.prompt_tokens, report.unknown_prompt_tokens}, "the prompt");
        !note.empty())
      result_.notes.push_back(std::move(note));
    if (report.stopped && !group_.has_enough(number_))
      throw Stopped();
  }

 private:
  Request& request() const { return *group_.requests()[number_]; }

  bool stops() {
    group_.meanwhile();
    return group_.has_enough(number_) || request().given_up() != Status::kOk || group_.is_closing();
  }

  void add(const std::string& text) {
    result_.text += text;
    if (request().streams && !group_.has_enough(number_))
      group_.tell_part(number_, result_.text);
  }

  void add_token(int32_t id, double score) {
    result_.tokens.push_back(system_.text.text->vocabulary().symbol(id));
    try {
      result_.token_scores.push_back(static_cast<float>(score));
    } catch (const std::bad_alloc&) {
      result_.tokens.pop_back();  // a token has a score, where memory ends too
      throw;
    }
  }

  /// </s> ends a line of a prompt.
  std::vector<int32_t> prompt_ids(const std::vector<std::string>& tokens) const {
    std::vector<int32_t> ids;
    const Vocabulary& vocabulary = system_.text.text->vocabulary();
    for (const std::string& token : tokens)
      ids.push_back(token == kSpecialSymbols[kEndId] ? kEndId : vocabulary.token_id(token));
    return ids;
  }

  const LanguageSystem& system_;
  int64_t workers_;
  Group& group_;
  size_t number_;
  GenerationResult& result_;
};

void generate(const Answerer& answerer, Group& group) {
  for (size_t i = 0; i < group.requests().size() && !group.is_over(); ++i) {
    const Request& request = *group.requests()[i];
    GenerationResult result;
    run_request(result, [&] {
      Generation(answerer, group, i, result).run(std::get<GenerationRequest>(request.wanted()));
    });
    if (result.status == Status::kCancelled) {
      const Status why = request.given_up();
      set_failure(
          result, why == Status::kTimedOut ? why : Status::kCancelled, given_up_message(why));
    }
    group.tell(i, make_result(std::move(result)));
  }
}

}  // namespace

Group::Group(const std::vector<Request*>& requests, const Busy& busy)
    : requests_(requests), busy_(busy), enough_(requests.size()) {
  common_ = requests.empty() ? nullptr : requests.front()->cancel_state();
  for (const Request* request : requests) {
    own_tokens_ = own_tokens_ || request->cancel_state() != common_;
  }
  first_deadline_ = first_deadline();
}

/// The first deadline of those that are not told.
Clock::time_point Group::first_deadline() const {
  Clock::time_point first = Clock::time_point::max();
  for (const Request* request : requests_)
    if (!request->is_told())
      first = std::min(first, request->deadline().value_or(first));
  return first;
}

void Group::count_told() {
  over_ = over_ ||
      std::ranges::all_of(requests_, [](const Request* request) { return request->is_told(); });
}

void Group::give_up(Status why) {
  const std::lock_guard lock(telling_);
  for (Request* request : requests_)
    if (over_ || (!request->tell_given_up(why) && is_one_call()))
      break;
  over_ = true;
}

bool Group::stops() {
  meanwhile();
  if (over_)
    return true;
  if (is_closing() || (common_ != nullptr && !own_tokens_ && *common_)) {
    give_up(Status::kCancelled);
    return true;
  }
  const Clock::time_point first = first_deadline_;
  if (!own_tokens_ && (first == Clock::time_point::max() || Clock::now() < first))
    return false;
  const std::lock_guard lock(telling_);
  for (Request* request : requests_)
    if (const Status why = request->given_up(); why != Status::kOk)
      request->tell_given_up(why);
  first_deadline_ = first_deadline();
  count_told();
  return over_;
}

void Group::tell(size_t number, OwnResult result) {
  const std::lock_guard lock(telling_);
  const bool goes_on = over_ || requests_[number]->tell(std::move(result));
  if (!is_one_call())
    count_told();
  else if (!goes_on)
    over_ = true;
}

void Group::tell_part(size_t number, const std::string& text) {
  const std::lock_guard lock(telling_);
  if (over_ || enough_[number] != 0)
    return;
  enough_[number] = requests_[number]->tell_part(text) ? 0 : 1;
  if (enough_[number] != 0 &&
      std::holds_alternative<TranslationInput>(requests_[number]->wanted())) {
    requests_[number]->tell(make_result(partial_result(requests_[number]->shown())));
    count_told();
  }
}

bool alike(const Request& a, const Request& b) {
  const auto* const first = std::get_if<TranslationInput>(&a.wanted());
  const auto* const second = std::get_if<TranslationInput>(&b.wanted());
  if (first != nullptr && second != nullptr)
    return first->search == second->search && draws_alike(first->sampling, second->sampling);
  return std::holds_alternative<ScoreRequest>(a.wanted()) &&
      std::holds_alternative<ScoreRequest>(b.wanted());
}

void answer(const Answerer& answerer, const std::vector<Request*>& requests, const Busy& busy) {
  if (requests.empty())
    return;
  Group group(requests, busy);
  if (std::holds_alternative<TranslationInput>(requests.front()->wanted()))
    translate(answerer, group);
  else if (std::holds_alternative<ScoreRequest>(requests.front()->wanted()))
    score(answerer, group);
  else
    generate(answerer, group);
}

}  // namespace seqconv::internal
