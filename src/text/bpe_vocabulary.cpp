#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/glossaries.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

/// Without the four characters at the end that should be "</w>".
std::string without_end_of_word(std::string_view symbol) {
  const auto characters = split_characters(symbol);
  const size_t kept = characters.size() - std::min<size_t>(characters.size(), 4);
  std::string text;
  for (size_t i = 0; i < kept; ++i)
    text += characters[i];
  return text;
}

}  // namespace

HasSymbol read_bpe_vocabulary(const std::filesystem::path& file, int64_t threshold) {
  auto pieces = std::make_shared<std::unordered_set<std::string>>();
  for (CountedSymbol& row : read_symbol_counts(file))
    if (row.count >= threshold)
      pieces->insert(std::move(row.symbol));
  if (pieces->empty()) {
    log_warning(
        file.string(), ": no piece comes ", threshold, " times, so that there is no vocabulary");
    return nullptr;
  }
  return [pieces](const std::string& piece) { return pieces->contains(piece); };
}

/// The merge whose last line comes first counts where several have one result,
/// as in subword-nmt.
void Bpe::remember_parts(const std::vector<Pair>& merges) {
  std::set<Pair> seen;
  for (auto pair = merges.rbegin(); pair != merges.rend(); ++pair)
    if (seen.insert(*pair).second)
      parts_[pair->first + pair->second] = *pair;
}

std::vector<std::string> Bpe::keep_to_vocabulary(const std::vector<std::string>& pieces) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < pieces.size(); ++i)
    split_again(pieces[i], /*last=*/i + 1 == pieces.size(), out);
  return out;
}

/// Taking "</w>" off where it is a symbol of its own (version 0.1) leaves an
/// empty piece at the word's end, here as in subword-nmt. Not recursive, as
/// codes may nest as deep as they are long.
void Bpe::split_again(std::string piece, bool last, std::vector<std::string>& out) const {
  std::vector<std::pair<std::string, bool>> rest = {{std::move(piece), last}};
  while (!rest.empty()) {
    const auto [text, ends_word] = std::move(rest.back());
    rest.pop_back();
    const bool known = options_.vocabulary(ends_word ? text : text + options_.separator);
    const auto found = parts_.find(ends_word ? concat(text, kEndOfWord) : text);
    if (known || text.empty() || found == parts_.end()) {
      out.push_back(text);
      continue;
    }
    auto [left, right] = found->second;
    if (ends_word)
      right = without_end_of_word(right);
    rest.emplace_back(std::move(right), ends_word);
    rest.emplace_back(std::move(left), false);
  }
}

}  // namespace seqconv::internal
