#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/system.h"
#include "search/backend.h"
#include "search/search.h"
#include "seqconv/requests.h"
#include "text/text_pipeline.h"

/// Sees to it that the protected pieces of a text are in its translation, in number and spelling.
namespace seqconv::internal {

/// The target's slots that a translation of `source` may have, ascending: those that stand in the
/// source's or the prefix' ids, and what joins beside any.
std::vector<int32_t> usable_slots(
    const TextPipeline& source_text,
    std::span<const int32_t> source,
    const TextPipeline& target_text,
    std::span<const int32_t> prefix);

/// A text with its protected pieces, as its translation must have them.
class PieceCheck {
 public:
  /// A source that was read as `ids`, maybe cut: pieces behind the cut are not looked for.
  /// `given`: text that translations must hold, a prefix and terms; its pieces stay. `needs_all`: a
  /// translation has all pieces of its source; otherwise, as in a summary, some may lack.
  struct Source {
    std::string_view text;
    std::span<const int32_t> ids;
    std::string_view given{};
    bool needs_all = true;
  };
  /// All are referred to as long as it lives.
  PieceCheck(
      const TextPipeline& source_text,
      const TextPipeline& target_text,
      const Source& source,
      const Slots& slots);

  /// Tells how a translation looked at the source; nothing where it cannot be said.
  using Look = std::function<std::optional<SourceShares>()>;

  /// The text of a translation's ids in which each piece comes as often as in the source, and what
  /// was done for it or could not be, a note each. Pieces are set apart by blanks if letters
  /// beside them would make others of them. Those that come too often are taken out, the last
  /// ones first, but for numbers, which are told. Those that are missing are put in where, by
  /// `look`, the source's words beside them went, or at the end; without needs_all they are
  /// counted in a note.
  std::string repair(
      const std::vector<int32_t>& ids, const Look& look, std::vector<std::string>& notes) const;

 private:
  class Repair;

  const TextPipeline& target_text_;
  const Slots& slots_;
  bool needs_all_;
  std::string source_;  // clean
  std::string given_;
  PieceKinds kinds_;
  std::vector<ProtectedPiece> pieces_;    // of the source
  std::vector<ByteRange> source_ranges_;  // of the tokens that were read
};

/// Holds a sentence whose translations are checked.
struct SentenceToCheck {
  const std::vector<int32_t>& source;  ///< ids as the model read them, maybe cut
  std::string_view text;               ///< of which they were made; "": only they are known
  std::string_view given;              ///< text that its translations must hold
  const std::vector<Hypothesis>& found;
  const Slots& slots;  ///< of the text
};

/// Puts the protected pieces of a sentence's translations, one a hypothesis, right, and notes in
/// the result what was done: each repair of the first one, and which others have any. Does
/// nothing where the model protects nothing, or the text is not known.
void keep_pieces(
    const TranslationSystem& system,
    const SentenceToCheck& sentence,
    Result& result,
    std::vector<Translation>& translations);

}  // namespace seqconv::internal
