#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace seqconv::internal {

/// Tells whether this build has MeCab: CMake's option SEQCONV_MECAB.
bool has_mecab();

/// The words of Japanese text by MeCab with a compiled dictionary. Copies share
/// it.
class MecabTokenizer {
 public:
  /// UsageError in a build without MeCab. Error for a folder that holds no
  /// dictionary, or one that is not of UTF-8.
  explicit MecabTokenizer(const std::filesystem::path& dictionary);

  /// Safe to call from several threads. Blanks separate words and belong to
  /// none.
  std::vector<std::string> split(std::string_view line) const;
  /// "0.996-IPA": MeCab's version, and IPA for IPAdic 2.7.0, which sacreBLEU
  /// has; for other dictionaries their number of words.
  const std::string& name() const { return name_; }

 private:
  class Dictionary;

  std::shared_ptr<const Dictionary> dictionary_;
  std::string name_;
};

}  // namespace seqconv::internal
