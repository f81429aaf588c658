#include "pipeline/translator.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <new>

#include "base/special_ids.h"
#include "pipeline/alignment.h"
#include "pipeline/piece_check.h"
#include "pipeline/prepared_sentence.h"
#include "pipeline/request_text.h"
#include "pipeline/sentence_terms.h"
#include "pipeline/shortlist.h"
#include "pipeline/stop_scope.h"
#include "pipeline/stoppable_decoder.h"
#include "pipeline/token_batches.h"
#include "pipeline/workers.h"
#include "search/sampled_search.h"

namespace seqconv::internal {
namespace {

/// Those of a sentence that have a probability; NoProbability where none has.
std::vector<Hypothesis> possible(std::vector<Hypothesis> found) {
  std::erase_if(
      found, [](const Hypothesis& hypothesis) { return !std::isfinite(hypothesis.score); });
  if (found.empty())
    throw NoProbability("no translation is left that the model holds possible and min_length, "
                        "no_repeat_ngram, ban_unknown and terms allow");
  return found;
}

Translation to_translation(
    const Hypothesis& hypothesis, const TextPipeline& target, const Slots& slots) {
  return {
      .text = target.decode(hypothesis.tokens, slots),
      .tokens = target.symbols(hypothesis.tokens),
      .score = hypothesis.score,
      .log_probability = hypothesis.log_probability,
      .token_scores = hypothesis.token_scores};
}

/// Source tokens that a sentence counts as in a batch: more where terms make its beam wider.
int64_t weight(const PreparedSentence& sentence) {
  int64_t width = sentence.search.beam;
  for (const std::vector<int32_t>& term : sentence.input.terms)
    width += std::ssize(term);
  return (sentence.input.source_length * width + sentence.search.beam - 1) / sentence.search.beam;
}

/// The text that a translation must hold whatever its source has.
std::string given_text(const PreparedSentence& sentence) {
  std::string text = sentence.given->target_prefix;
  for (const std::string& term : sentence.terms)
    text += concat(" ", term);
  return text;
}

}  // namespace

Translator::Translator(TranslationSystem system, const TranslatorOptions& options)
    : system_(std::move(system)), options_(options) {
  options_.search.validate("search");
  system_.term_words = std::make_shared<const TermWords>(system_.text.target);
  if (system_.shortlist != nullptr && !system_.backend->limits_words())
    fail_usage("a shortlist must be for a model of one softmax in the runtime: no other backend "
               "takes one, and no adaptive softmax");
}

/// Says where learned positions, not the options, may have cut a translation;
/// "" where not.
std::string Translator::cut_note(const PreparedSentence& sentence, const Hypothesis& best) const {
  const int64_t most = system_.backend->limits().target;
  if (most == 0 || std::ssize(best.tokens) < most ||
      maximum_length(sentence.search, sentence.input.source_length, kNoLimit) < most)
    return "";
  return concat(
      "the translation may be cut: it reaches the end of the model's ", most, " positions");
}

/// The decoder of a batch. Prefixes and terms must come and slots may, whatever is listed: their
/// words are listed too.
std::unique_ptr<StepDecoder> Translator::start(const Group& group) const {
  std::vector<std::vector<int32_t>> sources, words;
  for (const PreparedSentence* sentence : group) {
    sources.push_back(sentence->source);
    if (system_.shortlist == nullptr)
      continue;
    std::vector<int32_t> always = sentence->input.prefix;
    for (const std::vector<int32_t>& term : sentence->input.terms)
      always.insert(always.end(), term.begin(), term.end());
    always.insert(always.end(), sentence->slot_tokens.begin(), sentence->slot_tokens.end());
    words.push_back(system_.shortlist->words(sentence->source, always));
  }
  return system_.shortlist == nullptr ? system_.backend->start(sources)
                                      : system_.backend->start_within(sources, words);
}

/// Tokens that never come, ascending.
std::vector<int32_t> Translator::excluded(const PreparedSentence& sentence) const {
  const auto padding = system_.text.target->vocabulary().padding();
  std::vector<int32_t> tokens(padding.begin(), padding.end());
  const auto add = [&](int32_t token) {
    tokens.insert(std::ranges::lower_bound(tokens, token), token);
  };
  if (sentence.ban_unknown)
    add(kUnknownId);
  for (const int32_t slot : system_.text.target->vocabulary().slots())
    if (!std::ranges::binary_search(sentence.slot_tokens, slot))
      add(slot);
  return tokens;
}

/// Those of a batch: searched for, or drawn.
void Translator::find(
    const Group& group,
    StepDecoder& decoder,
    const FoundHypotheses& found,
    const SharedTokens& shared) const {
  const DecodingOptions& options = group.front()->search;
  const std::vector<int32_t> excluded = this->excluded(*group.front());
  if (const auto& sampling = group.front()->sampling) {
    std::vector<SampledInput> inputs;
    for (const PreparedSentence* sentence : group)
      inputs.push_back({sentence->input, sentence->sampling->seed.value_or(1)});
    return sampled_search(decoder, inputs, options, *sampling, excluded, found, shared);
  }
  std::vector<SearchInput> inputs;
  for (const PreparedSentence* sentence : group)
    inputs.push_back(sentence->input);
  search(decoder, inputs, options, excluded, found, shared);
}

/// Tells the texts of sentences that stream; nothing where none does.
SharedTokens Translator::tells_shared(const Group& group, const Part& part) const {
  if (std::ranges::none_of(
          group, [](const PreparedSentence* sentence) { return sentence->given->streams; }))
    return {};
  return [&, part](size_t i, const std::vector<int32_t>& tokens) {
    if (group[i]->given->streams)
      part(*group[i], decode_whole(*system_.text.target, tokens, group[i]->slots));
  };
}

/// The result of a sentence: all of it, or nothing where something is thrown.
void Translator::give(const PreparedSentence& sentence, const std::vector<Hypothesis>& all) const {
  const std::vector<Hypothesis> found = possible(all);
  std::vector<Translation> translations;
  for (const Hypothesis& hypothesis : found)
    translations.push_back(to_translation(hypothesis, *system_.text.target, sentence.slots));
  keep_pieces(
      system_,
      {.source = sentence.source,
       .text = sentence.given->text,
       .given = given_text(sentence),
       .found = found,
       .slots = sentence.slots},
      *sentence.result,
      translations);
  note_missing_terms(system_, sentence.terms, translations.front().text, *sentence.result);
  if (const Alignments wanted = sentence.given->alignments; wanted != Alignments::kNone)
    align(
        system_,
        {.source = sentence.source,
         .text = sentence.given->text,
         .found = found,
         .wanted = wanted,
         .slots = sentence.slots},
        *sentence.result,
        translations);
  std::string note = cut_note(sentence, found.front());
  if (!note.empty())
    sentence.result->notes.push_back(std::move(note));
  const int64_t most = maximum_length(
      sentence.search, sentence.input.source_length, or_no_limit(system_.backend->limits().target));
  sentence.result->at_limit = std::ssize(found.front().tokens) > most;
  sentence.result->translations = std::move(translations);
}

/// One batch; NoProbability when one of it has none, Stopped when the caller
/// wants no more. Sentences that ended before that have their results.
void Translator::translate_batch(
    const Group& group, const StopQuestion& stop, const Done& done, const Part& part) const {
  const StopScope scope(stop);
  StopScope::check();
  StoppableDecoder decoder(start(group), stop);
  const auto found = [&](size_t sentence, const std::vector<Hypothesis>& all) {
    give(*group[sentence], all);
    done(*group[sentence]);
  };
  find(group, decoder, found, tells_shared(group, part));
}

/// One batch. Where a sentence has no probability, or there is not memory
/// enough for all, those without a result go one by one: it alone fails,
/// whatever is beside it.
void Translator::translate_group(
    const Group& group, const StopQuestion& stop, const Done& done, const Part& part) const {
  Result outcome;
  std::exception_ptr thrown;  // by the caller's function: it is none of ours
  const auto tell = [&](const PreparedSentence& sentence) {
    try {
      done(sentence);
    } catch (...) {
      thrown = std::current_exception();
      throw Stopped();
    }
  };
  try {
    return translate_batch(group, stop, tell, part);
  } catch (const Stopped& stopped) {
    set_failure(outcome, Status::kCancelled, stopped.what());
  } catch (const NoProbability& error) {
    set_failure(outcome, Status::kFailed, error.what());
  } catch (const std::bad_alloc&) {
    set_failure(outcome, Status::kOutOfMemory, kOutOfMemory);
  }
  if (thrown)
    std::rethrow_exception(thrown);
  for (const PreparedSentence* sentence : group) {
    if (!sentence->result->translations.empty())
      continue;
    if (group.size() > 1) {
      translate_group({sentence}, stop, done, part);
      continue;
    }
    set_failure(*sentence->result, outcome.status, std::move(outcome.error));
    done(*sentence);
  }
}

/// Sentences in batches of those with the same options.
std::vector<Translator::Group> Translator::batches(
    const std::vector<PreparedSentence>& sentences, int64_t most_sentences) const {
  std::vector<Group> alike;
  for (const PreparedSentence& sentence : sentences) {
    auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& of) {
      const PreparedSentence& other = *of.front();
      return other.search == sentence.search && draws_alike(other.sampling, sentence.sampling) &&
          other.ban_unknown == sentence.ban_unknown && other.slot_tokens == sentence.slot_tokens;
    });
    if (found == alike.end())
      found = alike.insert(alike.end(), Group{});
    found->push_back(&sentence);
  }
  std::vector<Group> batches;
  for (const Group& group : alike) {
    std::vector<int64_t> lengths;
    for (const PreparedSentence* sentence : group)
      lengths.push_back(weight(*sentence));
    for (const auto& items :
         group_by_tokens(lengths, options_.batch_tokens, options_.workers, most_sentences)) {
      batches.emplace_back();
      for (const size_t item : items)
        batches.back().push_back(group[item]);
    }
  }
  return batches;
}

/// A list of requests, batch by batch.
class Translator::Work {
 public:
  /// Both are referred to as long as it lives. `most_sentences`: of a batch.
  Work(
      const Translator& translator,
      const std::vector<TranslationInput>& requests,
      const TranslationHooks& hooks,
      int64_t most_sentences)
      : translator_(translator), hooks_(hooks), results_(requests.size()) {
    sentences_.reserve(requests.size());
    for (size_t i = 0; i < requests.size(); ++i)
      if (!prepare(requests[i], i))
        tell(i);
    batches_ = translator.batches(sentences_, most_sentences);
  }

  size_t batches() const { return batches_.size(); }
  void translate(size_t batch) {
    translator_.translate_group(
        batches_[batch],
        hooks_.stop,
        [this](const PreparedSentence& sentence) { tell(sentence.request); },
        [this](const PreparedSentence& sentence, const std::string& text) {
          if (hooks_.part)
            hooks_.part(sentence.request, text);
        });
  }
  std::vector<TranslationOutcome>& results() { return results_; }

 private:
  /// Whether there is something to translate.
  bool prepare(const TranslationInput& request, size_t number) {
    TranslationOutcome& result = results_[number];
    const size_t before = sentences_.size();
    run_request(result, [&] {
      if (wants_to_stop(hooks_.stop))
        throw Stopped();
      PreparedSentence sentence =
          prepare_sentence(translator_.system_, translator_.options_, request, result);
      sentence.request = number;
      result.symbols = SymbolCount::of(sentence.source);
      if (!sentence.source.empty())
        return sentences_.push_back(std::move(sentence));
      if (request.alignments != Alignments::kNone)
        set_source_tokens(*translator_.system_.text.source, request.text, {}, kNoSlots, result);
      result.translations.emplace_back();
    });
    return sentences_.size() > before;
  }

  void tell(size_t request) {
    if (!hooks_.done)
      return;
    const std::lock_guard lock(telling_);
    hooks_.done(request, results_[request]);
  }

  const Translator& translator_;
  const TranslationHooks& hooks_;
  std::vector<TranslationOutcome> results_;
  std::vector<PreparedSentence> sentences_;  // those that are not empty
  std::vector<Group> batches_;
  std::mutex telling_;
};

namespace {

const TranslationHooks kNoHooks;

}  // namespace

/// One of several lists.
class Translator::ListedWork : public SharedJob {
 public:
  ListedWork(
      const Translator& translator, std::vector<TranslationInput> requests, TranslationLists& lists)
      : requests_(std::move(requests)),
        work_(translator, requests_, kNoHooks, kNoLimit),
        lists_(lists) {}

  size_t items() const override { return work_.batches(); }
  void work(size_t item) override { work_.translate(item); }
  void finish() override { lists_.write(work_.results()); }

 private:
  std::vector<TranslationInput> requests_;
  Work work_;
  TranslationLists& lists_;
};

std::vector<TranslationOutcome> Translator::translate(
    const std::vector<TranslationInput>& requests, const TranslationHooks& hooks) const {
  // Nothing comes after this list that a worker could go on with.
  Work work(*this, requests, hooks, most_items_of(std::ssize(requests), options_.workers));
  share_work(work.batches(), options_.workers, [&](size_t batch) { work.translate(batch); });
  return std::move(work.results());
}

void Translator::translate(TranslationLists& lists) const {
  share_jobs(options_.workers, [&]() -> std::unique_ptr<SharedJob> {
    std::vector<TranslationInput> requests;
    if (!lists.read(requests))
      return nullptr;
    return std::make_unique<ListedWork>(*this, std::move(requests), lists);
  });
}

}  // namespace seqconv::internal
