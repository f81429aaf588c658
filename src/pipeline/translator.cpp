#include "seqconv/pipeline/translator.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>

#include "seqconv/base/special_ids.h"
#include "seqconv/decode/sampled_search.h"
#include "seqconv/text/unicode.h"
#include "token_batches.h"
#include "workers.h"

namespace seqconv {

/// A request that can be translated.
struct Translator::Sentence {
  const SearchOptions* search = nullptr;
  const std::optional<SamplingOptions>* sampling = nullptr;
  uint64_t seed = 1;
  std::vector<int32_t> source;
  SearchInput input;
  TranslationResult* result = nullptr;
  size_t request = 0;  ///< its number
};

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();  // of steps

/// The ids of a line; Error for one that is not UTF-8.
std::vector<int32_t>
encode(const TextPipeline& text, const std::string& line, const char* what) {
  const size_t at = find_invalid_utf8(line);
  SEQCONV_CHECK(
      at == std::string_view::npos,
      what,
      " must be UTF-8, but is not at byte ",
      at);
  return text.encode(line);
}

/// Error for ids that the vocabulary does not have.
void check_ids(const std::vector<int32_t>& ids, const Vocabulary& vocabulary) {
  for (const int32_t id : ids)
    SEQCONV_CHECK(
        id >= 0 && id < vocabulary.size(),
        "ids of a sentence must be between 0 and ",
        vocabulary.size() - 1,
        ", but got ",
        id);
}

/// UsageError for options that make no sense together.
void validate(
    const SearchOptions& search,
    const std::optional<SamplingOptions>& sampling,
    const std::string& path) {
  if (sampling)
    sampling->validate("sampling");
  (sampling ? without_beam(search) : search).validate(path);
}

int64_t or_no_limit(int64_t positions) {
  return positions > 0 ? positions : kNoLimit;
}

/// No further step is made once a caller wants to stop.
class Stopped : public Error {
 public:
  Stopped() : Error(kStopped) {}
};

/// A decoder that asks before every step.
class StoppableDecoder : public StepDecoder {
 public:
  StoppableDecoder(
      std::unique_ptr<StepDecoder> decoder,
      const StopQuestion& stop)
      : decoder_(std::move(decoder)), stop_(stop) {}

  int64_t sentences() const override { return decoder_->sentences(); }
  int64_t vocabulary_size() const override {
    return decoder_->vocabulary_size();
  }
  int64_t max_steps() const override { return decoder_->max_steps(); }
  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    if (stop_ && stop_())
      throw Stopped();
    return decoder_->advance(parents, tokens, constraints, count);
  }
  std::span<const float> log_probabilities(int64_t row) const override {
    return decoder_->log_probabilities(row);
  }

 private:
  std::unique_ptr<StepDecoder> decoder_;
  const StopQuestion& stop_;
};

Translation to_translation(
    const Hypothesis& hypothesis,
    const TextPipeline& target) {
  return {
      .text = target.decode(hypothesis.tokens),
      .tokens = target.symbols(hypothesis.tokens),
      .score = hypothesis.score,
      .log_probability = hypothesis.log_probability,
      .token_scores = hypothesis.token_scores};
}

}  // namespace

Translator::Translator(
    TranslationSystem system,
    const TranslatorOptions& options)
    : system_(std::move(system)), options_(options) {
  validate(options_.search, options_.sampling, "search");
}

std::vector<int32_t> Translator::source_ids(
    const TranslationRequest& request,
    TranslationResult& result) const {
  const TextPipeline& text = *system_.text.source;
  std::vector<int32_t> ids =
      request.ids ? *request.ids : encode(text, request.line, "a line");
  check_ids(ids, text.vocabulary());
  const int64_t most = system_.backend->limits().source;
  const auto length = std::ssize(ids) + 1;
  if (most > 0 && length > most) {
    result.notes.push_back(concat(
        "a line of ",
        length,
        " tokens is cut to the model's ",
        most,
        " positions"));
    ids.resize(static_cast<size_t>(most) - 1);
  }
  return ids;
}

SearchInput Translator::search_input(
    const TranslationRequest& request,
    const SearchOptions& search,
    int64_t source_length,
    TranslationResult& result) const {
  SearchInput input{
      source_length,
      encode(*system_.text.target, request.target_prefix, "a target prefix")};
  if (const auto unknown = std::ranges::count(input.prefix, kUnknownId);
      unknown > 0)
    result.notes.push_back(concat(
        unknown,
        " of the ",
        input.prefix.size(),
        " symbols of the target prefix are unknown to the model: <unk> stands "
        "for them"));
  const int64_t steps = or_no_limit(system_.backend->limits().target);
  const int64_t most = maximum_length(search, source_length, steps);
  if (std::ssize(input.prefix) > most) {
    result.notes.push_back(concat(
        "a target prefix of ",
        input.prefix.size(),
        " tokens is cut to the ",
        most,
        " that ",
        most == steps - 1 ? "the model's learned positions"
                          : "max_length_a and max_length_b",
        " allow"));
    input.prefix.resize(static_cast<size_t>(most));
  }
  return input;
}

Translator::Sentence Translator::prepare(
    const TranslationRequest& request,
    TranslationResult& result) const {
  Sentence sentence{
      .search = request.search ? &*request.search : &options_.search,
      .sampling = request.sampling ? &request.sampling : &options_.sampling,
      .seed = request.seed,
      .result = &result};
  validate(*sentence.search, *sentence.sampling, "");
  sentence.source = source_ids(request, result);
  if (sentence.source.empty() && !request.target_prefix.empty())
    result.notes.push_back(
        "an empty line has no translation: its target prefix is not used");
  if (!sentence.source.empty())
    sentence.input = search_input(
        request,
        *sentence.search,
        std::ssize(sentence.source) + 1,
        result);
  return sentence;
}

/// Says where learned positions, not the options, may have cut a translation.
void Translator::note_if_cut(const Sentence& sentence, const Hypothesis& best)
    const {
  const int64_t most = system_.backend->limits().target;
  if (most == 0 || std::ssize(best.tokens) < most ||
      maximum_length(*sentence.search, sentence.input.source_length, kNoLimit) <
          most)
    return;
  sentence.result->notes.push_back(concat(
      "the translation may be cut: it reaches the end of the model's ",
      most,
      " positions"));
}

/// Those of a batch: searched for, or drawn.
std::vector<std::vector<Hypothesis>> Translator::hypotheses(
    const Group& group,
    StepDecoder& decoder) const {
  const SearchOptions& options = *group.front()->search;
  const auto excluded = system_.text.target->vocabulary().padding();
  if (const auto& sampling = *group.front()->sampling) {
    std::vector<SampledInput> inputs;
    for (const Sentence* sentence : group)
      inputs.push_back({sentence->input, sentence->seed});
    return sampled_search(decoder, inputs, options, *sampling, excluded);
  }
  std::vector<SearchInput> inputs;
  for (const Sentence* sentence : group)
    inputs.push_back(sentence->input);
  return search(decoder, inputs, options, excluded);
}

/// One batch; NoProbability when one of it has none.
void Translator::translate_batch(const Group& group, const StopQuestion& stop)
    const {
  std::vector<std::vector<int32_t>> sources;
  for (const Sentence* sentence : group)
    sources.push_back(sentence->source);
  const TextPipeline& target = *system_.text.target;
  if (stop && stop())
    throw Stopped();
  StoppableDecoder decoder(system_.backend->start(sources), stop);
  const auto found = hypotheses(group, decoder);
  for (size_t row = 0; row < group.size(); ++row) {
    note_if_cut(*group[row], found[row].front());
    for (const Hypothesis& hypothesis : found[row])
      group[row]->result->translations.push_back(
          to_translation(hypothesis, target));
  }
}

/// One batch. Where a sentence has no probability, or there is not memory
/// enough for all, they go one by one: it alone fails, whatever is beside it.
void Translator::translate_group(const Group& group, const StopQuestion& stop)
    const {
  const auto failed = [&](const char* why) {
    for (const Sentence* sentence : group)
      sentence->result->translations.clear();
    if (group.size() == 1)
      group[0]->result->error = why;
    else
      for (const Sentence* sentence : group)
        translate_group({sentence}, stop);
  };
  try {
    translate_batch(group, stop);
  } catch (const NoProbability& error) {
    failed(error.what());
  } catch (const std::bad_alloc&) {
    failed("out of memory: a shorter line or a smaller beam needs less");
  } catch (const Stopped& stopped) {
    for (const Sentence* sentence : group)
      sentence->result->error = stopped.what();
  }
}

/// Sentences in batches of those with the same options.
std::vector<Translator::Group> Translator::batches(
    const std::vector<Sentence>& sentences) const {
  std::vector<Group> alike;
  for (const Sentence& sentence : sentences) {
    auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& of) {
      return *of.front()->search == *sentence.search &&
          *of.front()->sampling == *sentence.sampling;
    });
    if (found == alike.end())
      found = alike.insert(alike.end(), Group{});
    found->push_back(&sentence);
  }
  std::vector<Group> batches;
  for (const Group& group : alike) {
    std::vector<int64_t> lengths;
    for (const Sentence* sentence : group)
      lengths.push_back(sentence->input.source_length);
    for (const auto& items :
         group_by_tokens(lengths, options_.batch_tokens, options_.workers)) {
      batches.emplace_back();
      for (const size_t item : items)
        batches.back().push_back(group[item]);
    }
  }
  return batches;
}

std::vector<TranslationResult> Translator::translate(
    const std::vector<TranslationRequest>& requests,
    const TranslationHooks& hooks) const {
  std::vector<TranslationResult> results(requests.size());
  std::mutex hearing;
  const auto done = [&](size_t request) {
    if (!hooks.done)
      return;
    const std::lock_guard lock(hearing);
    hooks.done(request, results[request]);
  };
  std::vector<Sentence> sentences;  // those that are not empty
  for (size_t i = 0; i < requests.size(); ++i) {
    try {
      Sentence sentence = prepare(requests[i], results[i]);
      sentence.request = i;
      if (hooks.count != nullptr)
        *hooks.count += SymbolCount::of(sentence.source);
      if (!sentence.source.empty()) {
        sentences.push_back(std::move(sentence));
        continue;
      }
      results[i].translations.emplace_back();
    } catch (const Error& error) {
      results[i].error = error.what();
    }
    done(i);
  }
  const std::vector<Group> groups = batches(sentences);
  share_work(groups.size(), options_.workers, [&](size_t number) {
    translate_group(groups[number], hooks.stop);
    for (const Sentence* sentence : groups[number])
      done(sentence->request);
  });
  return results;
}

}  // namespace seqconv
