#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// Options, requests and results of trained models: plain structs, for seqconv/runtime.h.
namespace seqconv {

/// The type that products are made in (docs/runtime.md).
enum class ComputeType {
  kModel,  ///< int8 for models of int8, float32 for others
  kAuto,   ///< what is quickest here without another loss
  kFloat32,
  kBfloat16,
  kInt8
};

/// Says how a model runs.
struct RuntimeOptions {
  /// Batches that a call works on at a time, at most 1024; 0: as many as there
  /// are cores. A Generator needs one whatever this says.
  int64_t threads = 0;
  int64_t batch_tokens = 4096;  ///< tokens of a batch, padding counted
  ComputeType compute = ComputeType::kModel;
  /// A file of `seqconv shortlist`: words that translations choose among. For a
  /// Translator alone; "": all words.
  std::string shortlist{};
  /// Files of a model folder may be links out of it, as in caches that are made
  /// of such links; else they are an error. Only where the folder is trusted.
  bool follow_links = false;
  /// Memory of the logits that a batch's step has at a time, in bytes. Results
  /// do not depend on it.
  int64_t logits_bytes = int64_t{32} << 20;
  /// For a Translator alone: longer texts are cut, the end of a text counted,
  /// and a note says so; 0: as the model says.
  int64_t max_source_tokens = 0;
  /// Asynchronous requests that may wait: one more is refused; 0: any number.
  int64_t queue_limit = 0;
  /// Milliseconds that an asynchronous request waits for others, to share a batch with, while
  /// fewer than a batch are there; 0: as long as they come one right after the other.
  int64_t max_wait_ms = 0;
  /// For a Translator alone, "" for none: a file of lines SOURCE<tab>TARGET. Translations of
  /// texts that hold a SOURCE hold its TARGET (docs/translating.md).
  std::string terminology{};
};

/// Says how translations are searched for; what is not given is the model's
/// own. Options that contradict each other, also min_length above the longest
/// translation of any source, make a request invalid.
struct SearchOptions {
  std::optional<int64_t> beam{};    ///< hypotheses kept; 1: greedy
  std::optional<int64_t> n_best{};  ///< translations given, at most the beam
  std::optional<double> length_penalty{};
  std::optional<double> max_length_a{};  ///< most tokens: a * source + b
  std::optional<int64_t> max_length_b{};
  std::optional<int64_t> min_length{};
  std::optional<int64_t> no_repeat_ngram{};  ///< 0: off
  std::optional<double> unknown_penalty{};
  std::optional<bool> ban_unknown{};  ///< <unk> comes in prefixes alone, in draws too
  /// Finished hypotheses stay in the beam, compared by score at every step.
  std::optional<bool> stepwise_length_penalty{};

  bool operator==(const SearchOptions&) const = default;
};

/// Options of drawing tokens. All of it holds together: bans, then
/// temperature, top_k and top_p.
struct SamplingOptions {
  double temperature = 1;  ///< 0: the most probable
  int64_t top_k = 0;       ///< only so many of the most probable; 0: all
  double top_p = 1;        ///< only the most probable that reach this sum
  bool ban_unknown = false;
  /// Equal seeds give equal texts. Not given: 1 and, of translations, the
  /// request's number in its call, so that equal requests have draws of their
  /// own; `seqconv translate --sample` gives line by line the same.
  std::optional<uint64_t> seed{};
};

/// The outcome of a request.
enum class Status {
  kOk,
  kInvalid,      ///< its text or options make no sense to the model
  kFailed,       ///< the model gives it no finite probability, or its options
                 ///< leave no possible translation
  kOutOfMemory,  ///< there is not memory enough for it
  kCancelled,    ///< before it was done
  kTimedOut,     ///< its timeout passed before it was done
};

/// The part that all results have.
struct Result {
  Status status = Status::kOk;
  std::string error;               ///< why it is not kOk; "" where it is
  std::vector<std::string> notes;  ///< what was cut, replaced or put right

  bool ok() const { return status == Status::kOk; }
};

/// Says what of its looks at the source a translation tells.
enum class Alignments {
  kNone,
  kPairs,   ///< tokens and their ranges, and which belong together
  kShares,  ///< that, and the shares that they are made from
};

/// A term of the source language, and its translation as it is to be spelled.
struct Term {
  std::string source{};
  std::string target{};
};

struct TranslationRequest {
  std::string text{};
  std::string target_prefix{};  ///< how the translation must begin
  SearchOptions search{};
  /// n_best translations are drawn instead of searched for, where given; then
  /// a beam or stepwise_length_penalty, which are a search's, are invalid.
  std::optional<SamplingOptions> sampling{};
  /// Costs another reading of text and translations where it is not kNone.
  Alignments alignments = Alignments::kNone;
  /// Instead of the texts, which are empty then: tokens as the model's vocabulary spells them;
  /// others are unknown. A last </s> is left out. A text and its tokens together are invalid.
  std::optional<std::vector<std::string>> tokens{};
  std::optional<std::vector<std::string>> target_prefix_tokens{};
  /// Beside those of RuntimeOptions::terminology, and before them: translations of a text that
  /// holds a source hold its target. For searches of texts alone: beside sampling or tokens they
  /// are invalid.
  std::vector<Term> terms{};
  /// From the call on; 0: none. One below 0 makes the call throw an OptionError.
  std::chrono::milliseconds timeout{0};
};

/// Bytes of a text: from `begin` to before `end`.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const ByteRange&) const = default;
};

/// A source token that a token of the translation looked at: their numbers, from 0.
struct AlignedTokens {
  int64_t source = 0;
  int64_t target = 0;

  auto operator<=>(const AlignedTokens&) const = default;  ///< by source, then target
};

struct Translation {
  std::string text;
  std::vector<std::string> tokens;
  double score = 0;                 ///< log-probability / length^penalty
  double log_probability = 0;       ///< natural
  std::vector<float> token_scores;  ///< of each token, </s> the last

  // Filled where the request wants alignments.
  std::vector<ByteRange> token_ranges{};   ///< of each token in `text`; of </s> its end
  std::vector<AlignedTokens> alignment{};  ///< by source, then target
  /// With kShares: the share of each source token, </s> the last, in what each token
  /// looked at: a row a token, whose sum is 1.
  std::vector<float> source_shares{};
};

struct TranslationResult : Result {
  /// Best first; one without tokens for an empty text, none where it is not ok.
  std::vector<Translation> translations;
  // Filled where the request wants alignments.
  std::vector<std::string> source_tokens{};  ///< of the text, </s> the last
  std::vector<ByteRange> source_ranges{};    ///< of each in the text; of </s> its end
};

/// A text and its translation.
struct ScoreRequest {
  std::string source{};
  std::string target{};
  std::chrono::milliseconds timeout{0};  ///< as TranslationRequest's
};

struct ScoreResult : Result {
  /// Natural, of the target given the source, </s> included; not a number
  /// where it is not ok.
  double log_probability = std::numeric_limits<double>::quiet_NaN();
};

struct GenerationRequest {
  std::string prompt{};
  int64_t length = 200;  ///< tokens to generate, at least 1
  SamplingOptions sampling{};
  /// Instead of the prompt, which is empty then: tokens as the model's vocabulary spells them,
  /// </s> between lines.
  std::optional<std::vector<std::string>> prompt_tokens{};
  std::chrono::milliseconds timeout{0};  ///< as TranslationRequest's
};

struct GenerationResult : Result {
  std::string text;                 ///< what follows the prompt; so far, where it is not ok
  std::vector<std::string> tokens;  ///< generated
  std::vector<float> token_scores;  ///< natural log-probability of each
  double log_probability = 0;       ///< their sum
};

}  // namespace seqconv
