#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>

namespace seqconv::internal::metrics {

/// WordNet's lists of irregular forms: the words that ROUGE-1.5.5 looks up
/// ("went": "go") instead of stemming.
class IrregularForms {
 public:
  IrregularForms() = default;
  /// Reads adj.exc, adv.exc, noun.exc and verb.exc of a folder: a form and its
  /// base forms a line. The first base form counts, and of several lines for
  /// one form the last. Error for a file that cannot be read, and with file and
  /// line for a form without a base form.
  explicit IrregularForms(const std::filesystem::path& folder);

  /// Null for other words.
  const std::string* find(const std::string& form) const;
  /// The number of forms and eight digits of the files' checksum,
  /// "5940-9d31c1f2"; "none" without any.
  std::string name() const;

 private:
  void read(const std::filesystem::path& file, uint64_t& sum);

  std::unordered_map<std::string, std::string> forms_;
  std::string checksum_;
};

}  // namespace seqconv::internal::metrics
