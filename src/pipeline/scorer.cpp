#include "pipeline/scorer.h"

#include <algorithm>
#include <cmath>

#include "pipeline/request_text.h"
#include "pipeline/stop_scope.h"
#include "pipeline/token_batches.h"
#include "pipeline/workers.h"

namespace seqconv::internal {
namespace {

/// Ids of both sides, and what belongs to them.
struct Pair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
  ScoreResult* result = nullptr;
};
using Pairs = std::vector<const Pair*>;

/// Natural log-probabilities of a batch.
std::vector<double> score_batch(const TranslationBackend& model, const Pairs& pairs) {
  std::vector<std::vector<int32_t>> sources, targets;
  for (const Pair* pair : pairs) {
    sources.push_back(pair->source);
    targets.push_back(pair->target);
  }
  return model.score(sources, targets);
}

/// Scores a batch, its pairs one by one if there is not memory enough for all.
/// std::bad_alloc where one alone is too long.
std::vector<double> score_within_memory(const TranslationBackend& model, const Pairs& pairs) {
  try {
    return score_batch(model, pairs);
  } catch (const std::bad_alloc&) {
    if (pairs.size() == 1)
      throw;
  }
  std::vector<double> found;
  for (const Pair* pair : pairs)
    found.push_back(score_batch(model, {pair}).front());
  return found;
}

/// One batch, its pairs one by one if there is not memory enough for all: one
/// that is too long fails alone.
void score_group(const TranslationBackend& model, const Pairs& pairs, const StopQuestion& stop) {
  try {
    const StopScope scope(stop);
    StopScope::check();
    const std::vector<double> found = score_batch(model, pairs);
    for (size_t i = 0; i < pairs.size(); ++i) {
      pairs[i]->result->log_probability = found[i];
      if (!std::isfinite(found[i]))
        set_failure(
            *pairs[i]->result,
            Status::kFailed,
            "the model gives the pair no finite probability: its weights are too large, or "
            "damaged");
    }
    return;
  } catch (const Stopped& stopped) {
    for (const Pair* pair : pairs)
      set_failure(*pair->result, Status::kCancelled, stopped.what());
    return;
  } catch (const std::bad_alloc&) {
    if (pairs.size() == 1)
      return set_failure(*pairs[0]->result, Status::kOutOfMemory, kOutOfMemory);
  }
  for (const Pair* pair : pairs)
    score_group(model, {pair}, stop);
}

/// A side of pairs; lengths count </s>, 0 is any.
struct SideToScore {
  const TextPipeline& text;
  const char* what;  ///< "the source"
  int64_t positions;
  int64_t cut = 0;
};

std::vector<int32_t> ids_of(
    const SideToScore& side, const std::string& line, const Slots& slots, ScoreResult& result) {
  const char* const what = side.what;
  std::vector<int32_t> ids = encode_text(side.text, line, slots, what);
  const auto length = std::ssize(ids) + 1;
  if (cut_tokens(ids, side.cut))
    result.notes.push_back(concat(
        what, " of ", length, " tokens is cut to the model's ", side.cut, " (max_source_tokens)"));
  SEQCONV_CHECK(
      side.positions == 0 || std::ssize(ids) < side.positions,
      what,
      " has ",
      std::ssize(ids) + 1,
      " tokens, </s> counted, more than the model's ",
      side.positions,
      " learned positions");
  if (std::string note = unknown_note(SymbolCount::of(ids), what); !note.empty())
    result.notes.push_back(std::move(note));
  return ids;
}

/// Batches of pairs of like length.
std::vector<Pairs> batches_of(const std::vector<Pair>& pairs, const ScorerOptions& options) {
  std::vector<int64_t> lengths;
  for (const Pair& pair : pairs)
    lengths.push_back(std::max(std::ssize(pair.source), std::ssize(pair.target)) + 1);
  std::vector<Pairs> batches;
  for (const auto& items : group_by_tokens(lengths, options.batch_tokens, options.workers)) {
    batches.emplace_back();
    for (const size_t item : items)
      batches.back().push_back(&pairs[item]);
  }
  return batches;
}

}  // namespace

std::vector<double> score_pairs(
    const TranslationBackend& model,
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets,
    int64_t batch_tokens,
    int64_t workers) {
  SEQCONV_CHECK(
      sources.size() == targets.size(),
      "source and target must have the same number of lines, but got ",
      sources.size(),
      " and ",
      targets.size());
  std::vector<ScoreResult> results(sources.size());
  std::vector<Pair> pairs;
  for (size_t i = 0; i < sources.size(); ++i)
    pairs.push_back({sources[i], targets[i], &results[i]});
  const auto batches = batches_of(pairs, {batch_tokens, workers});
  share_work(batches.size(), workers, [&](size_t number) {
    const std::vector<double> found = score_within_memory(model, batches[number]);
    for (size_t i = 0; i < found.size(); ++i)
      batches[number][i]->result->log_probability = found[i];
  });
  std::vector<double> scores;
  for (const ScoreResult& result : results)
    scores.push_back(result.log_probability);
  return scores;
}

std::vector<ScoreResult> score_requests(
    const TranslationSystem& system,
    const std::vector<ScoreRequest>& requests,
    const ScorerOptions& options,
    const StopQuestion& stop) {
  const PositionLimits limits = system.backend->limits();
  const TranslationText& text = system.text;
  const SideToScore source{*text.source, "the source", limits.source, text.max_source_tokens};
  const SideToScore target{*text.target, "the target", limits.target};
  std::vector<ScoreResult> results(requests.size());
  std::vector<Pair> pairs;
  for (size_t i = 0; i < requests.size(); ++i)
    run_request(results[i], [&] {
      if (wants_to_stop(stop))
        throw Stopped();
      ScoreResult& own = results[i];
      const Slots slots = text.source->slots_of(requests[i].source);
      pairs.push_back(
          {ids_of(source, requests[i].source, slots, own),
           ids_of(target, requests[i].target, slots, own),
           &own});
    });
  const std::vector<Pairs> batches = batches_of(pairs, options);
  share_work(batches.size(), options.workers, [&](size_t number) {
    score_group(*system.backend, batches[number], stop);
  });
  return results;
}

}  // namespace seqconv::internal
