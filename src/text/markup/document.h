#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seqconv/requests.h"
#include "text/markup/html.h"

namespace seqconv::internal {

enum class DocumentFormat { kText, kHtml };

/// Running text, or HTML, as sentences to translate, and their translations put together. White
/// space between sentences, lines without a letter and tags (html.h) come back as they were.
class Document {
 public:
  /// `language`: of the text, as split_sentences has it. Sentences of more than `most` characters
  /// are translated in parts (split_long). Error as of HtmlText.
  Document(
      std::string text,
      DocumentFormat format,
      std::string_view language,
      size_t most = std::numeric_limits<size_t>::max());
  Document(const Document&) = delete;  // its parts are views into it
  Document& operator=(const Document&) = delete;

  DocumentFormat format() const { return html_ ? DocumentFormat::kHtml : DocumentFormat::kText; }

  /// The sentences, without white space at their ends.
  const std::vector<std::string_view>& sentences() const { return sentences_; }

  /// True where `with` reads alignments, to put tags where their words went.
  bool wants_alignments() const { return html_.has_value() && html_->has_elements(); }

  /// The document with a translation of each sentence: the `number`th of its result, from 0, or
  /// the last where it has fewer. Error for a result that is not ok, or of other sentences.
  std::string with(const std::vector<TranslationResult>& results, size_t number = 0) const;

  /// Words of the text and of what `with` makes of it that belong together (aligned_words), for
  /// results with alignments; none of HTML. Error as of `with`.
  std::vector<AlignedRanges> aligned(const std::vector<TranslationResult>& results) const;

  /// The part of a text's translation, not of HTML's, that sentence `number` gives it: its result,
  /// and what stands in front of it and, if it is the last, behind. `so_far`: the parts of all
  /// before it, put together. Error for a result that is not ok.
  std::string part(size_t number, const TranslationResult& result, std::string_view so_far) const;

 private:
  /// A stretch of text: sentences, and what stands between them.
  struct Stretch {
    std::string_view text;
    std::vector<size_t> sentences;  // numbers of them
  };

  Stretch add_stretch(std::string_view text, std::string_view language, size_t most);
  std::string lead(
      const Stretch& stretch,
      size_t place,
      std::string_view so_far,
      std::string_view translation) const;
  std::string_view rest(const Stretch& stretch) const;
  void check_results(const std::vector<TranslationResult>& results) const;
  RunTranslation translation_of(
      const Stretch& stretch, const std::vector<TranslationResult>& results, size_t number) const;

  std::string text_;
  std::optional<HtmlText> html_;
  std::vector<std::string_view> sentences_;
  std::vector<Stretch> stretches_;  // one, or one per run of HTML
};

}  // namespace seqconv::internal
