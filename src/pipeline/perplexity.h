#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_names.h"
#include "pipeline/system.h"

namespace seqconv::internal {

struct PerplexityOptions {
  int64_t block = 0;            ///< tokens seen at a time; 0 = as trained
  int64_t context_window = 0;   ///< of a block, those read again, not scored
  int64_t batch_tokens = 4096;  ///< padding counted
  int64_t workers = 1;          ///< batches scored at a time
  OptionNames names{""};        ///< of these, in messages
};

/// The cost of a text under a model. Every line's end is predicted, so it
/// counts as a token, a word, a character and a byte.
struct TextCost {
  double bits = 0;         ///< minus the sum of log2 p over all tokens
  int64_t tokens = 0;      ///< ids, and </s> behind each line
  int64_t words = 0;       ///< between blanks
  int64_t characters = 0;  ///< code points
  int64_t bytes = 0;
  int64_t lines = 0;
  int64_t blank = 0;    ///< of them blank
  int64_t unknown = 0;  ///< tokens that are <unk>

  /// 2^(bits / count) (semantics.md 4).
  static double perplexity(double bits, int64_t count);
};

/// Measures a text line by line, in bounded memory. The text is cut as the
/// model's training text was: lines by themselves; or a stream (of documents)
/// in blocks of `block` tokens, of which the first context_window are a second
/// reading of the tokens before; a block's first input is the token before it.
class PerplexityMeter {
 public:
  /// UsageError for a context window that leaves no new token in a block, one
  /// for a model of single lines, and a block beyond learned positions.
  PerplexityMeter(const LanguageSystem& model, const PerplexityOptions& options);

  /// Error (behind `where`, "file:line") for a symbol outside the vocabulary
  /// when the model has never seen <unk>, and for a line beyond the learned
  /// positions of a model of single lines. Such a line is left out: the next
  /// one may be added.
  void add_line(std::string_view line, const std::string& where);

  /// The same for a sentence that is ids, without </s>, already; a blank one
  /// has none. Its words, characters and bytes are those of its text.
  void add_ids(const std::vector<int32_t>& ids, const std::string& where);

  /// The whole text's cost. Error when it was empty, or when half or more of
  /// its symbols are unknown: a text in another vocabulary. Here or before,
  /// Error (behind the line's `where`) when the model gives no finite
  /// probability.
  TextCost finish();

 private:
  /// Tokens in, tokens out; the last `scored` of the latter count.
  struct Row {
    std::vector<int32_t> ids;  ///< one more than predicted
    int64_t scored = 0;
    std::string where;  ///< its last line
  };

  void add(
      const std::string& line,
      const std::vector<int32_t>& ids,
      bool blank,
      const std::string& where);
  void end_sequence();
  void cut(int64_t end);
  void score_rows();
  void score_group(const std::vector<size_t>& group, std::vector<double>& scores) const;

  const LanguageSystem& model_;
  PerplexityOptions options_;
  TextCost cost_;
  std::string where_;              // the last line
  std::vector<int32_t> sequence_;  // </s>, then what is not yet scored
  int64_t next_ = 1;               // the first of them to be scored
  std::vector<Row> rows_;
  int64_t row_tokens_ = 0;
};

}  // namespace seqconv::internal
