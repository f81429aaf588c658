#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/system.h"
#include "search/terms.h"
#include "seqconv/requests.h"
#include "text/slots.h"

/// Terms of a text, and of its translation.
namespace seqconv::internal {

/// Words of a model's target text, by its vocabulary's tokens: found when they are first asked for.
/// Any thread; no lock, so that fork() finds none held.
class TermWords {
 public:
  explicit TermWords(std::shared_ptr<const TextPipeline> text) : text_(std::move(text)) {}
  TermWords(const TermWords&) = delete;
  TermWords& operator=(const TermWords&) = delete;
  ~TermWords() { delete found_.load(); }

  const WordEdges& edges() const { return found().edges; }
  /// Ids of a term among other words.
  std::vector<int32_t> encode(std::string_view term, const Slots& slots) const;

 private:
  struct Found {
    WordEdges edges;
    bool has_blanks = true;  ///< the text does, between words of scripts that need none
  };
  const Found& found() const;

  std::shared_ptr<const TextPipeline> text_;
  mutable std::atomic<const Found*> found_{nullptr};
};

/// The terms that a translation must hold.
struct SentenceTerms {
  std::vector<std::vector<int32_t>> ids;  ///< for SearchInput
  std::vector<std::string> targets;       ///< as they are spelled, one a run of ids
};

/// A request and what its model reads of it.
struct SentenceWithTerms {
  const TranslationRequest& request;
  const std::vector<int32_t>& source;  ///< ids, maybe cut
  const Slots& slots;                  ///< of the text
  bool is_drawn = false;
};

/// The terms of a text by its request and its model's terminology, each as often as it stands in
/// what the model reads. Notes tell of those that its vocabulary cannot spell, of more than a
/// search takes (search/terms.h), and of a terminology beside draws or tokens, which it is not for.
/// Error for terms of the request that make no sense.
SentenceTerms terms_of(
    const TranslationSystem& system, const SentenceWithTerms& sentence, Result& result);

/// Notes the terms that a translation does not hold in this spelling.
void note_missing_terms(
    const TranslationSystem& system,
    const std::vector<std::string>& terms,
    std::string_view translation,
    Result& result);

}  // namespace seqconv::internal
