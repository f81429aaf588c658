#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqconv/requests.h"
#include "seqconv/seqconv.h"

/// Trained models in C++20 programs: docs/embedding.md. CPU, no LibTorch, no types of other
/// libraries. Everything here is inline over the C interface (seqconv/seqconv.h), so that a
/// program and the library may be of different compilers and of different versions of these
/// structs. Texts are UTF-8. Objects may be used by several threads at a time; results are the
/// same bytes whatever is beside a request. An object outlives the calls on it; one that was
/// moved from may only be assigned to and destroyed. No signal is handled: a model's file stays
/// mapped, and one that is cut short in place ends the process (SIGBUS), so that files of models
/// are replaced by renaming.
namespace seqconv {

/// The base of all exceptions of this library. The result of a request tells
/// what concerns that one alone. An exception of a function that the caller
/// gave us reaches the caller as it is.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A model cannot be opened: no folder of one, another task, damaged.
class ModelError : public Error {
 public:
  using Error::Error;
};
/// RuntimeOptions that make no sense, a timeout below 0, or an empty function.
class OptionError : public Error {
 public:
  using Error::Error;
};
/// Says why a function that takes one text and gives no Result has none to
/// give.
class RequestError : public Error {
 public:
  using Error::Error;
};
/// More requests wait than RuntimeOptions::queue_limit allows: this one was refused.
class QueueFull : public Error {
 public:
  using Error::Error;
};
/// There is not memory enough for a model, or for what a call must hold.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

namespace detail {
class Access;
}  // namespace detail

/// Asks calls to stop, from any thread. Copies are one token.
class CancelToken {
 public:
  CancelToken();
  CancelToken(const CancelToken&) = default;  // moving copies
  CancelToken& operator=(const CancelToken&) = default;
  ~CancelToken() = default;
  void cancel() const { seqconv_cancel(token_.get()); }
  bool is_cancelled() const { return seqconv_is_cancelled(token_.get()) != 0; }

 private:
  friend class detail::Access;
  std::shared_ptr<seqconv_cancel_token> token_;
};

/// Says what an opened model is.
struct ModelInfo {
  int64_t models = 0;      ///< that vote
  int64_t threads = 0;     ///< as opened
  int64_t parameters = 0;  ///< numbers of the models' files
  int64_t file_bytes = 0;  ///< of these files, which are mapped
  int64_t weight_bytes = 0;
  int64_t source_vocabulary = 0;  ///< symbols; 0 for a language model
  int64_t target_vocabulary = 0;
  int64_t max_source_tokens = 0;  ///< before a text is cut, its end counted; 0: no limit
  int64_t max_target_tokens = 0;
  std::string compute{};   ///< "float32", "bfloat16" or "int8"
  SearchOptions search{};  ///< the defaults of a translation model
};

namespace detail {
struct CloseModel {
  void operator()(seqconv_model* model) const { seqconv_close(model); }
};
using Model = std::unique_ptr<seqconv_model, CloseModel>;
}  // namespace detail

/// Translates and summarises. A model folder, or several that vote.
class Translator {
 public:
  /// ModelError, OptionError, OutOfMemory.
  explicit Translator(const std::string& model, const RuntimeOptions& options = {});
  explicit Translator(const std::vector<std::string>& models, const RuntimeOptions& options = {});

  /// The best translation of one text. RequestError, OutOfMemory.
  Translation translate(std::string_view text) const;

  /// A result a request, in their order. OptionError for a timeout below 0; OutOfMemory.
  std::vector<TranslationResult> translate(
      const std::vector<TranslationRequest>& requests, const CancelToken& cancel = {}) const;

  /// The same, each result given to on_result as soon as it is there: with the
  /// number of its request, by some thread, one at a time. Once it throws it is
  /// called no more, and its exception leaves this call. OptionError as above; OutOfMemory.
  void translate(
      const std::vector<TranslationRequest>& requests,
      const std::function<void(size_t, TranslationResult)>& on_result,
      const CancelToken& cancel = {}) const;

  /// Translates one text and tells parts of it as soon as all hypotheses have them in common:
  /// `text` follows the first `kept` bytes of what was told. False ends it, which is ok.
  /// Exceptions of on_part leave this call. OptionError as above; OutOfMemory.
  TranslationResult stream(
      const TranslationRequest& request,
      const std::function<bool(size_t kept, std::string_view text)>& on_part,
      const CancelToken& cancel = {}) const;

  /// Summaries of documents, whose lines are taken together; sentences of summaries are lines.
  /// OptionError for alignments or a timeout below 0; OutOfMemory.
  std::vector<TranslationResult> summarise(
      const std::vector<TranslationRequest>& requests, const CancelToken& cancel = {}) const;

  /// Returns at once. Requests that come close together share batches. The future gives a result
  /// and never throws; it may outlive the Translator, whose end cancels what waits or is under
  /// way. OptionError as above; OutOfMemory; QueueFull; Error where no thread can be started.
  std::future<TranslationResult> translate_async(
      const TranslationRequest& request, const CancelToken& cancel = {}) const;

  /// Likewise, the result given to on_result, which is called once, by some thread, and must not
  /// throw. It may ask for more, but not destroy this object.
  void translate_async(
      const TranslationRequest& request,
      std::function<void(TranslationResult)> on_result,
      const CancelToken& cancel = {}) const;

  ModelInfo info() const;

 private:
  detail::Model model_;
};

/// Scores given translations. One model folder.
class Scorer {
 public:
  /// ModelError, OptionError, OutOfMemory.
  explicit Scorer(const std::string& model, const RuntimeOptions& options = {});

  /// Log-probability of one translation. RequestError, OutOfMemory.
  double score(std::string_view source, std::string_view target) const;

  /// A result a request, in their order. OptionError for a timeout below 0; OutOfMemory.
  std::vector<ScoreResult> score(
      const std::vector<ScoreRequest>& requests, const CancelToken& cancel = {}) const;

  /// As Translator::translate_async.
  std::future<ScoreResult> score_async(
      const ScoreRequest& request, const CancelToken& cancel = {}) const;

  ModelInfo info() const;

 private:
  detail::Model model_;
};

/// Goes on with texts. The folder of a language model.
class Generator {
 public:
  /// ModelError, OptionError, OutOfMemory.
  explicit Generator(const std::string& model, const RuntimeOptions& options = {});

  /// Returns what follows the prompt. RequestError, OutOfMemory.
  std::string generate(std::string_view prompt) const;

  /// on_text hears the text as it comes, whole characters, by this thread;
  /// false ends it, which is ok. Its exceptions leave this call. OptionError for a timeout below
  /// 0; OutOfMemory.
  GenerationResult generate(
      const GenerationRequest& request,
      const std::function<bool(std::string_view)>& on_text = {},
      const CancelToken& cancel = {}) const;

  /// As Translator::translate_async.
  std::future<GenerationResult> generate_async(
      const GenerationRequest& request, const CancelToken& cancel = {}) const;

  ModelInfo info() const;

 private:
  detail::Model model_;
};

}  // namespace seqconv

#include "seqconv/runtime_inline.h"
