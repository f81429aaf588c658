#include "text/markup/document.h"

#include <algorithm>
#include <utility>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/markup/aligned_words.h"
#include "text/sentences.h"

namespace seqconv::internal {
namespace {

/// Goes between two translations where `space` stood between their sources: languages
/// differ in whether there is a blank.
std::string_view space_between(
    std::string_view before, std::string_view space, std::string_view after) {
  if (before.empty() || after.empty() || space.find_first_not_of(' ') != space.npos)
    return space;
  size_t first = 0;
  const bool is_joined = is_written_without_spaces(next_code_point(after, first));
  if (space.empty())
    return is_joined ? space : " ";
  return is_joined && !is_ascii(before.substr(before.size() - 1)) ? "" : space;
}

ByteRange moved(ByteRange range, int64_t by) {
  return {range.begin + by, range.end + by};
}

const Translation& chosen(const TranslationResult& result, size_t number) {
  if (!result.ok())
    fail(result.error);
  if (result.translations.empty())
    fail("[document] a result must have a translation, but got none");
  return result.translations[std::min(number, result.translations.size() - 1)];
}

void add_aligned(
    const TranslationResult& result,
    const Translation& translation,
    int64_t source,
    int64_t target,
    std::vector<AlignedRanges>& aligned) {
  for (const AlignedTokens pair : translation.alignment) {
    const ByteRange from = result.source_ranges.at(static_cast<size_t>(pair.source));
    const ByteRange to = translation.token_ranges.at(static_cast<size_t>(pair.target));
    if (from.begin < from.end && to.begin < to.end)
      aligned.push_back({moved(from, source), moved(to, target)});
  }
}

}  // namespace

Document::Document(std::string text, DocumentFormat format, std::string_view language, size_t most)
    : text_(std::move(text)) {
  if (format == DocumentFormat::kText) {
    stretches_.push_back(add_stretch(text_, language, most));
    return;
  }
  html_.emplace(text_);
  for (const std::string_view run : html_->texts())
    stretches_.push_back(add_stretch(run, language, most));
}

Document::Stretch Document::add_stretch(
    std::string_view text, std::string_view language, size_t most) {
  Stretch stretch{text, {}};
  for (const std::string_view sentence : split_sentences(text, language)) {
    for (const std::string_view part : split_long(sentence, most)) {
      if (!has_letter(part))
        continue;
      stretch.sentences.push_back(sentences_.size());
      sentences_.push_back(trim_start(trim_end(part)));
    }
  }
  return stretch;
}

RunTranslation Document::translation_of(
    const Stretch& stretch, const std::vector<TranslationResult>& results, size_t number) const {
  RunTranslation run;
  for (size_t place = 0; place < stretch.sentences.size(); ++place) {
    const size_t i = stretch.sentences[place];
    const Translation& translation = chosen(results[i], number);
    run.text += lead(stretch, place, run.text, translation.text);
    add_aligned(
        results[i],
        translation,
        sentences_[i].data() - stretch.text.data(),
        static_cast<int64_t>(run.text.size()),
        run.aligned);
    run.text += translation.text;
  }
  run.text += rest(stretch);
  return run;
}

/// Goes in front of a sentence's translation.
std::string Document::lead(
    const Stretch& stretch,
    size_t place,
    std::string_view so_far,
    std::string_view translation) const {
  const char* const end = sentences_[stretch.sentences[place]].data();
  if (place == 0)
    return {stretch.text.data(), end};
  const std::string_view last = sentences_[stretch.sentences[place - 1]];
  const char* const begin = last.data() + last.size();
  return std::string(space_between(so_far, {begin, static_cast<size_t>(end - begin)}, translation));
}

/// Goes behind the last sentence.
std::string_view Document::rest(const Stretch& stretch) const {
  if (stretch.sentences.empty())
    return stretch.text;
  const std::string_view last = sentences_[stretch.sentences.back()];
  return stretch.text.substr(static_cast<size_t>(last.data() + last.size() - stretch.text.data()));
}

std::string Document::part(
    size_t number, const TranslationResult& result, std::string_view so_far) const {
  const Translation& translation = chosen(result, 0);
  std::string part = lead(stretches_[0], number, so_far, translation.text) + translation.text;
  if (number + 1 == sentences_.size())
    part += rest(stretches_[0]);
  return part;
}

void Document::check_results(const std::vector<TranslationResult>& results) const {
  if (results.size() != sentences_.size())
    fail("[document] there must be ", sentences_.size(), " results, but got ", results.size());
}

std::vector<AlignedRanges> Document::aligned(const std::vector<TranslationResult>& results) const {
  check_results(results);
  if (html_)
    return {};
  return aligned_words(text_, translation_of(stretches_[0], results, 0));
}

std::string Document::with(const std::vector<TranslationResult>& results, size_t number) const {
  check_results(results);
  std::vector<RunTranslation> runs;
  for (const Stretch& stretch : stretches_)
    runs.push_back(translation_of(stretch, results, number));
  return html_ ? html_->with(runs) : std::move(runs[0].text);
}

}  // namespace seqconv::internal
