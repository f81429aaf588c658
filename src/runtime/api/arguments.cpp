#include "runtime/api/arguments.h"

#include <optional>

namespace seqconv::internal {
namespace {

constexpr int64_t kMostThreads = 1024;
constexpr int64_t kMostWaitMs = 60'000;

void set(std::optional<int64_t>& option, int64_t given) {
  if (given != SEQCONV_OWN_INTEGER)
    option = given;
}
void set(std::optional<double>& option, double given) {
  if (given != SEQCONV_OWN_NUMBER)
    option = given;
}
void set(std::optional<bool>& option, int32_t given, const char* name) {
  if (given != SEQCONV_OWN_FLAG)
    option = read_flag(given, name);
}

SearchOptions read_search(const seqconv_search_options* given) {
  const auto own = read_struct(given, SEQCONV_SEARCH_OPTIONS_INIT, "seqconv_search_options");
  SearchOptions search;
  set(search.beam, own.beam);
  set(search.n_best, own.n_best);
  set(search.length_penalty, own.length_penalty);
  set(search.max_length_a, own.max_length_a);
  set(search.max_length_b, own.max_length_b);
  set(search.min_length, own.min_length);
  set(search.no_repeat_ngram, own.no_repeat_ngram);
  set(search.unknown_penalty, own.unknown_penalty);
  set(search.ban_unknown, own.ban_unknown, "ban_unknown");
  set(search.stepwise_length_penalty, own.stepwise_length_penalty, "stepwise_length_penalty");
  return search;
}

SamplingOptions read_sampling(const seqconv_sampling_options* given) {
  const auto own = read_struct(given, SEQCONV_SAMPLING_OPTIONS_INIT, "seqconv_sampling_options");
  SamplingOptions sampling{
      .temperature = own.temperature,
      .top_k = own.top_k,
      .top_p = own.top_p,
      .ban_unknown = read_flag(own.ban_unknown, "ban_unknown")};
  if (read_flag(own.has_seed, "has_seed"))
    sampling.seed = own.seed;
  return sampling;
}

std::optional<std::vector<std::string>> read_tokens(
    const seqconv_text* tokens, int64_t count, const char* name) {
  if (tokens == nullptr && count == 0)
    return std::nullopt;
  return read_texts(tokens, count, name);
}

std::chrono::milliseconds read_timeout(int64_t timeout_ms) {
  if (timeout_ms < 0)
    fail_option("timeout_ms must be at least 0, but got ", timeout_ms);
  return std::chrono::milliseconds(timeout_ms);
}

std::vector<Term> read_terms(const seqconv_term* terms, int64_t count) {
  if (count < 0 || (terms == nullptr && count > 0))
    fail_option("terms must be at least 0, which are given, but got ", count);
  std::vector<Term> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(
        {std::string(read_text(terms[i].source, "source")),
         std::string(read_text(terms[i].target, "target"))});
  return all;
}

/// Members without a meaning are 0, so that they may get one.
void require_zero(int32_t reserved) {
  if (reserved != 0)
    fail_option("reserved must be 0, but got ", reserved);
}

/// The enum's value of a number from 0 to `last`.
template <class E>
E read_enum(int32_t given, E last, const char* name) {
  if (given < 0 || given > static_cast<int32_t>(last))
    fail_option(name, " must be between 0 and ", static_cast<int32_t>(last), ", but got ", given);
  return static_cast<E>(given);
}

}  // namespace

bool read_flag(int32_t flag, const char* name) {
  if (flag != 0 && flag != 1)
    fail_option(name, " must be 0 or 1, but got ", flag);
  return flag == 1;
}

std::string_view read_text(const seqconv_text& text, const char* name) {
  if (text.size < -1 || (text.data == nullptr && text.size != 0))
    fail_option(
        name,
        " must have a size of at least -1, and 0 where its data is NULL, but got ",
        text.size);
  if (text.data == nullptr)
    return {};
  return text.size == -1 ? std::string_view(text.data)
                         : std::string_view(text.data, static_cast<size_t>(text.size));
}

std::vector<std::string> read_texts(const seqconv_text* texts, int64_t count, const char* name) {
  if (count < 0 || (texts == nullptr && count > 0))
    fail_option(name, " must be at least 0 texts, which are given, but got ", count);
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    all.emplace_back(read_text(texts[i], name));
  return all;
}

RuntimeOptions read_options(const seqconv_runtime_options& options) {
  if (options.threads < 0 || options.threads > kMostThreads)
    fail_option("threads must be between 0 and ", kMostThreads, ", but got ", options.threads);
  for (const auto& [name, value, least] :
       std::initializer_list<std::tuple<const char*, int64_t, int>>{
           {"batch_tokens", options.batch_tokens, 1},
           {"logits_bytes", options.logits_bytes, 1},
           {"max_source_tokens", options.max_source_tokens, 0},
           {"queue_limit", options.queue_limit, 0},
           {"max_wait_ms", options.max_wait_ms, 0}})
    if (value < least)
      fail_option(name, " must be at least ", least, ", but got ", value);
  if (options.max_wait_ms > kMostWaitMs)
    fail_option("max_wait_ms must be at most ", kMostWaitMs, ", but got ", options.max_wait_ms);
  read_enum(options.task, SEQCONV_TASK_LANGUAGE_MODEL, "task");
  require_zero(options.reserved);
  return {
      .threads = options.threads,
      .batch_tokens = options.batch_tokens,
      .compute = read_enum(options.compute, ComputeType::kInt8, "compute"),
      .shortlist = options.shortlist == nullptr ? "" : options.shortlist,
      .follow_links = read_flag(options.follow_links, "follow_links"),
      .logits_bytes = options.logits_bytes,
      .max_source_tokens = options.max_source_tokens,
      .queue_limit = options.queue_limit,
      .max_wait_ms = options.max_wait_ms,
      .terminology = options.terminology == nullptr ? "" : options.terminology};
}

seqconv_search_options to_c(const DecodingOptions& options) {
  seqconv_search_options all = SEQCONV_SEARCH_OPTIONS_INIT;
  all.beam = options.beam;
  all.n_best = options.n_best;
  all.length_penalty = options.length_penalty;
  all.max_length_a = options.max_length_a;
  all.max_length_b = options.max_length_b;
  all.min_length = options.min_length;
  all.no_repeat_ngram = options.no_repeat_ngram;
  all.unknown_penalty = options.unknown_penalty;
  all.ban_unknown = 0;
  all.stepwise_length_penalty = options.stepwise_length_penalty ? 1 : 0;
  return all;
}

TranslationRequest read_request(const seqconv_translation_request& request) {
  TranslationRequest own{
      .text = std::string(read_text(request.text, "text")),
      .target_prefix = std::string(read_text(request.prefix, "prefix")),
      .search = read_search(request.search),
      .alignments = read_enum(request.alignments, Alignments::kShares, "alignments"),
      .tokens = read_tokens(request.tokens, request.token_count, "tokens"),
      .target_prefix_tokens =
          read_tokens(request.prefix_tokens, request.prefix_token_count, "prefix_tokens"),
      .terms = read_terms(request.terms, request.term_count),
      .timeout = read_timeout(request.timeout_ms)};
  if (request.sampling != nullptr)
    own.sampling = read_sampling(request.sampling);
  return own;
}

ScoreRequest read_request(const seqconv_score_request& request) {
  return {
      .source = std::string(read_text(request.source, "source")),
      .target = std::string(read_text(request.target, "target")),
      .timeout = read_timeout(request.timeout_ms)};
}

GenerationRequest read_request(const seqconv_generation_request& request) {
  require_zero(request.reserved);
  return {
      .prompt = std::string(read_text(request.prompt, "prompt")),
      .length = request.length,
      .sampling = read_sampling(request.sampling),
      .prompt_tokens =
          read_tokens(request.prompt_tokens, request.prompt_token_count, "prompt_tokens"),
      .timeout = read_timeout(request.timeout_ms)};
}

}  // namespace seqconv::internal
