#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/request.h"
#include "pipeline/system.h"
#include "search/sample.h"
#include "search/search.h"

namespace seqconv::internal {

struct TranslatorOptions {
  DecodingOptions search;  ///< where requests say nothing else
  /// <unk> comes in prefixes alone, where requests say nothing else.
  bool ban_unknown = false;
  /// Names of the search's options in notes.
  OptionNames names{""};
  int64_t batch_tokens = 4096;  ///< source tokens of a batch, padding counted
  int64_t workers = 1;          ///< batches translated at a time
  /// Longer lines, </s> counted, are cut, and a note says so; 0: as the model
  /// says.
  int64_t max_source_tokens = 0;
};

/// A request as the translator takes it.
struct TranslationInput : TranslationRequest {
  /// The sentence as ids without </s>, where given: `text` is then read for alignments and
  /// protected pieces alone.
  std::optional<std::vector<int32_t>> ids{};
  /// Parts of its translation are told as they are found.
  bool streams = false;
};

/// A result beside what is counted. It fails by options that make no sense, text that is not
/// UTF-8, ids outside the vocabulary, a model that gives it no finite probability, no memory
/// for it, or because its caller wanted to stop.
struct TranslationOutcome : TranslationResult {
  SymbolCount symbols;      ///< of the line
  bool source_cut = false;  ///< to the model's max_source_tokens: the first note
  bool at_limit = false;    ///< the best translation has as many tokens as it may
};

/// Holds what the caller of a translation has to say and wants to hear.
struct TranslationHooks {
  /// Asked before every step of a batch. Once it is true no further step is
  /// made; requests without a result are stopped.
  StopQuestion stop{};
  /// Called with the number of a request when its result is there, one at a
  /// time, by whatever thread made it: others of its batch may be at work
  /// still. Its exceptions end the translation.
  std::function<void(size_t request, const TranslationOutcome& result)> done{};
  /// Told the text so far of a request that streams, which all that may still become its best
  /// translation begin with; a later text may end in another way. By any thread.
  std::function<void(size_t request, const std::string& text)> part{};
};

/// Lists of requests that come one after another, and what becomes of them.
/// Both functions are called in the lists' order by one thread at a time, which
/// need not be the same one each time; read() may be called beside write().
class TranslationLists {
 public:
  virtual ~TranslationLists() = default;

  /// The next list into `requests`, which is empty; false when there is none.
  virtual bool read(std::vector<TranslationInput>& requests) = 0;
  /// One result a request.
  virtual void write(const std::vector<TranslationOutcome>& results) = 0;
};

struct PreparedSentence;  // pipeline/prepared_sentence.h

/// Raw lines to translations, in input order: text -> batches sorted by length
/// -> search -> text. With several workers batches are translated by threads of
/// their own and made smaller, so that all have something to do; results are
/// the same where the backend's do not depend on the batch. A line longer than
/// the model's max_source_tokens or learned positions is cut, and so is a
/// target prefix longer than a translation may be; notes say so.
class Translator {
 public:
  /// UsageError when the options make no sense, and for a shortlist that the
  /// backend cannot heed.
  Translator(TranslationSystem system, const TranslatorOptions& options);

  /// One result a request. A request that fails leaves the others as they are,
  /// one for which there is not memory enough among them. Safe to call from
  /// several threads at a time.
  std::vector<TranslationOutcome> translate(
      const std::vector<TranslationInput>& requests, const TranslationHooks& hooks = {}) const;

  /// The same for list after list. With several workers the next list is read
  /// while one is translated, and begun while the last batches of one are at
  /// work. Exceptions of `lists` are thrown when all before them is written.
  void translate(TranslationLists& lists) const;

  const TranslatorOptions& options() const { return options_; }
  const TranslationSystem& system() const { return system_; }

 private:
  class Work;
  class ListedWork;
  using Group = std::vector<const PreparedSentence*>;
  using Done = std::function<void(const PreparedSentence&)>;
  using Part = std::function<void(const PreparedSentence&, const std::string&)>;

  std::string cut_note(const PreparedSentence& sentence, const Hypothesis& best) const;
  std::vector<Group> batches(
      const std::vector<PreparedSentence>& sentences, int64_t most_sentences) const;
  void translate_group(
      const Group& group, const StopQuestion& stop, const Done& done, const Part& part) const;
  std::unique_ptr<StepDecoder> start(const Group& group) const;
  void find(
      const Group& group,
      StepDecoder& decoder,
      const FoundHypotheses& found,
      const SharedTokens& shared) const;
  void give(const PreparedSentence& sentence, const std::vector<Hypothesis>& found) const;
  void translate_batch(
      const Group& group, const StopQuestion& stop, const Done& done, const Part& part) const;
  SharedTokens tells_shared(const Group& group, const Part& part) const;
  /// Tokens that never come.
  std::vector<int32_t> excluded(const PreparedSentence& sentence) const;

  TranslationSystem system_;
  TranslatorOptions options_;
};

}  // namespace seqconv::internal
