#include "pipeline/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/characters.h"
#include "base/utf8.h"
#include "pipeline/token_batches.h"
#include "pipeline/workers.h"
#include "text/line_reader.h"
#include "text/vocabulary.h"

namespace seqconv::internal {
namespace {

/// Batches that are sorted by length together.
constexpr int64_t kBuffered = 8;

PerplexityOptions settle(const LanguageSystem& model, PerplexityOptions options) {
  const OptionNames& names = options.names;
  const bool lines = model.stream.samples == SampleKind::kLines;
  if (lines && (options.context_window > 0 || options.block > 0))
    fail_usage(
        names(options.block > 0 ? "block" : "context_window"),
        " is for models of blocks, but this one was trained on single lines (data.samples = "
        "\"lines\")");
  if (options.block == 0)
    options.block = model.stream.block_tokens;
  if (!lines && options.context_window >= options.block)
    fail_usage(
        names("context_window"),
        " must be smaller than the block of ",
        options.block,
        " tokens, which has a new token then, but got ",
        options.context_window);
  if (!lines && options.block > model.backend->max_tokens())
    fail_usage(
        names("block"),
        " must be at most the model's ",
        model.backend->max_tokens(),
        " learned positions, but got ",
        options.block);
  if (options.batch_tokens < 1)
    fail_usage(names("batch_tokens"), " must be >= 1, but got ", options.batch_tokens);
  return options;
}

/// Adds what a line and its end amount to.
void count(const std::string& line, const std::vector<int32_t>& ids, TextCost& cost) {
  cost.tokens += std::ssize(ids) + 1;
  cost.words += std::ssize(split_words(line)) + 1;
  cost.characters += std::ssize(split_characters(line)) + 1;
  cost.bytes += std::ssize(line) + 1;
  cost.unknown += std::count(ids.begin(), ids.end(), kUnknownId);
}

}  // namespace

double TextCost::perplexity(double bits, int64_t count) {
  return std::exp2(bits / static_cast<double>(std::max<int64_t>(count, 1)));
}

PerplexityMeter::PerplexityMeter(const LanguageSystem& model, const PerplexityOptions& options)
    : model_(model), options_(settle(model, options)), sequence_{kEndId} {}

void PerplexityMeter::add_line(std::string_view line, const std::string& where) {
  const std::string clean = clean_line(line);
  const std::vector<int32_t> ids = model_.text.text->encode(clean);
  check_known(model_.text, clean, ids, where);
  add(clean, ids, ids.empty() || is_blank(clean), where);
}

void PerplexityMeter::add_ids(const std::vector<int32_t>& ids, const std::string& where) {
  check_known(model_.text, "", ids, where);
  add(model_.text.text->decode(ids), ids, ids.empty(), where);
}

void PerplexityMeter::add(
    const std::string& line,
    const std::vector<int32_t>& ids,
    bool blank,
    const std::string& where) {
  where_ = where;
  const auto length = std::ssize(ids) + 1;
  if (model_.stream.samples == SampleKind::kLines)
    SEQCONV_CHECK(
        blank || length <= model_.backend->max_tokens(),
        where,
        ": a line of ",
        length,
        " tokens is longer than the model's ",
        model_.backend->max_tokens(),
        " learned positions");
  ++cost_.lines;
  cost_.blank += blank;
  if (blank && model_.stream.samples != SampleKind::kBlocks) {
    end_sequence();
    return;
  }
  count(line, ids, cost_);
  sequence_.insert(sequence_.end(), ids.begin(), ids.end());
  sequence_.push_back(kEndId);
  if (model_.stream.samples == SampleKind::kLines) {
    end_sequence();
    return;
  }
  const int64_t fresh = options_.block - options_.context_window;
  while (std::ssize(sequence_) - next_ >= fresh)
    cut(next_ + fresh);
}

/// A row that scores sequence_[next_, end), then forgets what no later row
/// reads.
void PerplexityMeter::cut(int64_t end) {
  const int64_t first = std::max<int64_t>(next_ - options_.context_window, 1);
  rows_.push_back({{sequence_.begin() + first - 1, sequence_.begin() + end}, end - next_, where_});
  row_tokens_ += end - first;
  const int64_t kept = std::max<int64_t>(end - 1 - options_.context_window, 0);
  sequence_.erase(sequence_.begin(), sequence_.begin() + kept);
  next_ = end - kept;
  if (row_tokens_ >= kBuffered * options_.batch_tokens)
    score_rows();
}

void PerplexityMeter::end_sequence() {
  if (next_ < std::ssize(sequence_))
    cut(std::ssize(sequence_));
  sequence_ = {kEndId};
  next_ = 1;
}

void PerplexityMeter::score_rows() {
  std::vector<int64_t> lengths;
  for (const Row& row : rows_)
    lengths.push_back(std::ssize(row.ids) - 1);
  const auto groups = group_by_tokens(lengths, options_.batch_tokens, options_.workers);
  std::vector<double> scores(rows_.size());
  share_work(
      groups.size(), options_.workers, [&](size_t number) { score_group(groups[number], scores); });
  // In the text's order: the sum does not depend on the batches.
  for (size_t i = 0; i < rows_.size(); ++i) {
    SEQCONV_CHECK(
        std::isfinite(scores[i]),
        rows_[i].where,
        ": the model gives the text here no finite probability: its weights are too large, or "
        "damaged");
    cost_.bits -= scores[i] / std::numbers::ln2;
  }
  rows_.clear();
  row_tokens_ = 0;
}

void PerplexityMeter::score_group(
    const std::vector<size_t>& group, std::vector<double>& scores) const {
  std::vector<std::span<const int32_t>> pieces;
  for (const size_t row : group)
    pieces.emplace_back(rows_[row].ids);
  const std::vector<std::vector<float>> found = model_.backend->score(pieces);
  for (size_t i = 0; i < group.size(); ++i)
    scores[group[i]] =
        std::accumulate(found[i].end() - rows_[group[i]].scored, found[i].end(), 0.0);
}

TextCost PerplexityMeter::finish() {
  end_sequence();
  score_rows();
  SEQCONV_CHECK(
      cost_.lines > cost_.blank,
      "no text to measure: of ",
      cost_.lines,
      " lines ",
      cost_.blank,
      " are blank");
  const int64_t symbols =
      cost_.tokens - cost_.lines + (model_.stream.samples == SampleKind::kBlocks ? 0 : cost_.blank);
  SEQCONV_CHECK(
      2 * cost_.unknown < symbols,
      "wrong text for this model's vocabulary: ",
      cost_.unknown,
      " of ",
      symbols,
      " symbols are unknown");
  return cost_;
}

}  // namespace seqconv::internal
