#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/option_names.h"
#include "text/symbol_count.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

class IbmModel1;

/// Says how a shortlist is learned.
struct ShortlistOptions {
  int64_t per_word = 50;
  int64_t common = 200;
  int64_t iterations = 5;

  template <class Visitor>
  void visit(Visitor& v) {
    v("per_word", per_word, "Most target words listed for a source word, 1 to 10,000");
    v("common",
      common,
      R"(The most frequent target words, listed for every sentence; 0 to 1,000,000)");
    v("iterations", iterations, "Iterations of word alignment (IBM model 1), 1 to 100");
  }

  /// UsageError when a value makes no sense; messages have these names.
  void validate(const OptionNames& names) const;
};

/// Tells what a shortlist was learned from, and what it does there.
struct ShortlistReport {
  int64_t pairs = 0;  ///< learned from
  int64_t empty = 0;  ///< pairs with an empty side, left out
  SymbolCount source_symbols;
  SymbolCount target_symbols;
  /// Target words listed for a sentence of the first pairs, 10,000 at most, on
  /// average, and the share of its translation's words that are among them.
  double listed = 0;
  double covered = 0;
};

/// Which words of the target vocabulary a source sentence's translation may
/// hold: the likely translations of its words, by word alignment, and the most
/// frequent words. A model then computes the probabilities of these alone.
/// Always listed are </s>, <unk>, and the target word that is spelled like a
/// source word: names and numbers are copied. So is what never comes, <s>,
/// <pad> and the rows that fill a vocabulary up: a list of all words has the
/// probabilities of a model without one. Never changes: for all threads.
class Shortlist {
 public:
  /// Learns one from the ids of parallel files, line by line as training reads
  /// them. Errors: those of read_pairs, and no pair with words on both sides.
  static Shortlist learn(
      const TranslationText& text,
      const std::vector<std::string>& source_files,
      const std::vector<std::string>& target_files,
      const ShortlistOptions& options,
      ShortlistReport& report);

  /// Reads what write() wrote. Errors name the file: one that is none, of a
  /// later version or damaged, and one of other vocabularies than the text's.
  static Shortlist load(const std::filesystem::path& file, const TranslationText& text);

  /// Writes it as safetensors: docs/model_folder.md. Atomic.
  void write(const std::filesystem::path& file) const;

  /// The words for a sentence, by its ids without </s>, and `others`, where it
  /// must be able to begin with them: ascending, each once.
  std::vector<int32_t> words(
      std::span<const int32_t> source, std::span<const int32_t> others = {}) const;

 private:
  /// One side's vocabulary.
  struct Side {
    int64_t symbols = 0;
    std::string sum;  ///< a checksum of them

    explicit Side(const Vocabulary& vocabulary);
    std::string description() const;
  };

  /// One of its vocabularies that lists nothing yet.
  explicit Shortlist(const TranslationText& text);
  void describe(const IbmModel1& pairs, ShortlistReport& report) const;
  std::span<const int32_t> listed(int32_t source) const;

  Side source_;
  Side target_;
  std::vector<int32_t> common_;  // ascending
  std::vector<int32_t> listed_;  // word by word, each ascending
  std::vector<int64_t> ends_;    // where the list of each source word ends
};

}  // namespace seqconv::internal
