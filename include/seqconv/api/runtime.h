#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Trained models in other programs: docs/embedding.md. CPU, no LibTorch, no
/// types of other libraries. Texts are UTF-8. Objects may be used by several
/// threads at a time; results are the same bytes whatever is beside a request.
namespace seqconv::api {

#define SEQCONV_API __attribute__((visibility("default")))

/// What goes wrong: all exceptions of this library are of this class. What
/// concerns one request stands in its result instead.
class SEQCONV_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A model cannot be opened: no folder of one, another task, damaged.
class SEQCONV_API ModelError : public Error {
 public:
  using Error::Error;
};
/// Options that make no sense.
class SEQCONV_API OptionError : public Error {
 public:
  using Error::Error;
};
/// There is not memory enough for a model, or for what a call must hold.
class SEQCONV_API OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Asks calls to stop, from any thread. Copies are one token.
class SEQCONV_API CancelToken {
 public:
  CancelToken();
  void cancel() const;
  bool is_cancelled() const;

 private:
  std::shared_ptr<struct CancelState> state_;
};

/// How a model runs.
struct RuntimeOptions {
  int64_t threads = 0;  ///< batches at a time; 0: as many as there are cores
  int64_t batch_tokens = 4096;  ///< source tokens of a batch
};

/// How translations are searched for; what is not given is the model's own.
struct SearchSettings {
  std::optional<int64_t> beam{};    ///< hypotheses kept; 1: greedy
  std::optional<int64_t> n_best{};  ///< translations given, at most the beam
  std::optional<double> length_penalty{};
  std::optional<double> max_length_a{};  ///< most tokens: a * source + b
  std::optional<int64_t> max_length_b{};
  std::optional<int64_t> min_length{};
  std::optional<int64_t> no_repeat_ngram{};  ///< 0: off
  std::optional<double> unknown_penalty{};
};

/// How tokens are drawn.
struct SamplingSettings {
  double temperature = 1;  ///< 0: the most probable
  int64_t top_k = 0;       ///< only so many of the most probable; 0: all
  double top_p = 1;        ///< only the most probable that reach this sum
  bool ban_unknown = false;
  uint64_t seed = 1;  ///< the same one gives the same text
};

struct TranslationRequest {
  std::string text{};
  std::string target_prefix{};  ///< how the translation must begin
  SearchSettings search{};
  /// n_best translations are drawn instead of searched for, where given.
  std::optional<SamplingSettings> sampling{};
};

struct Translation {
  std::string text;
  std::vector<std::string> tokens;
  double score = 0;                 ///< log-probability / length^penalty
  double log_probability = 0;       ///< natural
  std::vector<float> token_scores;  ///< of each token, </s> the last
};

struct TranslationResult {
  /// Best first; one empty one for an empty text.
  std::vector<Translation> translations;
  /// Why there is none: the request's options or text, no memory, or that it
  /// was cancelled. "" where all is well.
  std::string error;
  bool cancelled = false;
  std::vector<std::string> notes;  ///< what was cut

  bool ok() const { return error.empty(); }
};

/// Translates. A model folder, or several that vote.
class SEQCONV_API Translator {
 public:
  /// ModelError, OptionError, OutOfMemory.
  explicit Translator(
      const std::string& model,
      const RuntimeOptions& options = {});
  explicit Translator(
      const std::vector<std::string>& models,
      const RuntimeOptions& options = {});
  /// Requests of translate_async that wait or are under way are cancelled.
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  /// One text. Error where its result has one.
  Translation translate(std::string_view text) const;

  /// A result a request, in their order.
  std::vector<TranslationResult> translate(
      const std::vector<TranslationRequest>& requests,
      const CancelToken& cancel = {}) const;

  /// The same, each result given to on_result as soon as it is there: with the
  /// number of its request, by some thread, one at a time.
  void translate(
      const std::vector<TranslationRequest>& requests,
      const std::function<void(size_t, TranslationResult)>& on_result,
      const CancelToken& cancel = {}) const;

  /// Returns at once. Requests that come close together share batches.
  std::future<TranslationResult> translate_async(
      TranslationRequest request,
      CancelToken cancel = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Scores given translations. One model folder.
class SEQCONV_API Scorer {
 public:
  explicit Scorer(const std::string& model, const RuntimeOptions& options = {});
  ~Scorer();
  Scorer(Scorer&&) noexcept;
  Scorer& operator=(Scorer&&) noexcept;

  struct Pair {
    std::string source;
    std::string target;
  };
  /// Natural log-probability of each target given its source, </s> included.
  /// Error for text that is not UTF-8 or longer than learned positions.
  std::vector<double> score(const std::vector<Pair>& pairs) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Goes on with texts. The folder of a language model.
class SEQCONV_API Generator {
 public:
  explicit Generator(
      const std::string& model,
      const RuntimeOptions& options = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  struct Request {
    std::string prompt{};
    int64_t length = 200;  ///< tokens to generate
    SamplingSettings sampling{};
  };
  /// What follows the prompt. on_text hears it as it comes; false ends it.
  /// Error for a prompt that the model cannot read; OptionError.
  std::string generate(
      const Request& request,
      const std::function<bool(std::string_view)>& on_text = {},
      const CancelToken& cancel = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace seqconv::api
