#include "metrics/irregular_forms.h"

#include <sstream>
#include <string_view>

#include "base/checksum.h"
#include "base/error.h"
#include "base/files.h"

namespace seqconv::internal::metrics {

IrregularForms::IrregularForms(const std::filesystem::path& folder) {
  uint64_t sum = 0;
  for (const char* kind : {"adj", "adv", "noun", "verb"})
    read(folder / (std::string(kind) + ".exc"), sum);
  checksum_ = checksum_text(sum).substr(0, 8);
}

void IrregularForms::read(const std::filesystem::path& file, uint64_t& sum) {
  const std::string content = read_file(file);
  sum = checksum(std::as_bytes(std::span(content)), sum);
  std::istringstream lines(content);
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string form;
    std::string base;
    if (!(words >> form))
      continue;
    SEQCONV_CHECK(
        words >> base,
        file.string(),
        ":",
        number,
        ": an irregular form and its base form were wanted, but got '",
        shorten(form),
        "'");
    forms_[form] = base;
  }
}

const std::string* IrregularForms::find(const std::string& form) const {
  const auto found = forms_.find(form);
  return found == forms_.end() ? nullptr : &found->second;
}

std::string IrregularForms::name() const {
  return forms_.empty() ? "none" : concat(forms_.size(), "-", checksum_);
}

}  // namespace seqconv::internal::metrics
