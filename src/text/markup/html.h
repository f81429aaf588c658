#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/markup/place_elements.h"

namespace seqconv::internal {

struct HtmlRun;

/// The text of an HTML document, or of a part of one, that is to be translated, and all else
/// byte for byte. A run of text lies between tags that separate (<p>, <br>, <td>); inline tags
/// (<b>, <a>, <span>) are elements within it. The attributes alt and title are runs too.
/// <script>, <style>, <pre>, <textarea>, <svg> and <math> stay as they are, as do elements with
/// translate="no" or the class notranslate, and runs without a letter; <code>, <kbd>, <samp>,
/// <var> and <tt> stay within a run.
class HtmlText {
 public:
  /// Most levels of tags.
  static constexpr int64_t kDeepest = 512;

  /// `html` must outlive it. Error for text that is not UTF-8, or nested deeper than kDeepest,
  /// before it is parsed.
  explicit HtmlText(std::string_view html);
  ~HtmlText();
  HtmlText(const HtmlText&) = delete;
  HtmlText& operator=(const HtmlText&) = delete;

  /// The texts of the runs, in the order of the document: entities are read, white space is
  /// single blanks, none at the ends.
  std::vector<std::string_view> texts() const;

  /// True where some run has inline tags.
  bool has_elements() const;

  /// The document with one translation per run. Translations are escaped; characters that a run
  /// wrote as entities are written so again. Each inline tag is there once and nests as it did.
  std::string with(const std::vector<RunTranslation>& translations) const;

 private:
  std::string_view html_;
  std::vector<HtmlRun> runs_;
};

}  // namespace seqconv::internal
