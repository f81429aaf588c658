#include "runtime/adaptive_output.h"

#include <algorithm>
#include <optional>

#include "runtime/output_rows.h"

namespace seqconv::internal::runtime {
namespace {

/// Adaptive softmax (Grave et al. 2017).
class AdaptiveOutput : public Output {
 public:
  AdaptiveOutput(const ModelOptions& options, const Weights& weights, int64_t vocabulary);

  void log_probabilities(
      int64_t rows, const float* hidden, float* out, Workspace& space) const override;
  void candidates(
      const float* hidden,
      const RowConstraint& constraint,
      int64_t count,
      std::vector<Candidate>& out,
      Workspace& space) const override;
  void score(std::span<const int32_t> words, const float* hidden, float* out, Workspace& space)
      const override;
  bool has_logits() const override { return false; }
  const WordLogits& logits() const override {
    fail("an adaptive softmax has bands of words, not one row of logits");
  }

 private:
  struct Tail {
    int64_t begin = 0;
    int64_t end = 0;
    Linear projection;
    Linear words;

    int64_t size() const { return end - begin; }
    /// x [rows, D] -> logits [rows, size()].
    void logits(int64_t rows, const float* x, float* out, Workspace& space) const;
    /// x [rows, D] -> log-probabilities inside the tail [rows, size()].
    void run(int64_t rows, const float* x, float* out, Workspace& space) const {
      logits(rows, x, out, space);
      normalize(rows, size(), out);
    }
  };

  int64_t head_size() const { return tails_.empty() ? vocabulary_ : tails_[0].begin; }
  /// Head words and tails.
  int64_t choices() const { return head_size() + std::ssize(tails_); }
  /// x [rows, D] -> logits of head words and tails.
  float* head_logits(int64_t rows, const float* x, Workspace::Frame& frame) const;
  /// x [rows, D] -> log-probabilities of head words and tails.
  float* head(int64_t rows, const float* x, Workspace::Frame& frame) const {
    float* const out = head_logits(rows, x, frame);
    normalize(rows, choices(), out);
    return out;
  }
  /// x [rows, D] -> log-probabilities [rows, V].
  void expand(int64_t rows, const float* x, float* out, Workspace& space) const;
  /// Adds what of a row x [D] can be among the best.
  void add_best(const float* x, BestCandidates& best, Workspace& space) const;
  void score_tail(
      const Tail& tail,
      std::span<const int32_t> words,
      const float* x,
      float* out,
      Workspace& space) const;

  int64_t vocabulary_;
  int64_t width_;
  Projection projection_;
  std::optional<Linear> head_projection_;
  Linear head_words_;
  std::optional<Linear> classes_;
  std::vector<Tail> tails_;
};

AdaptiveOutput::AdaptiveOutput(
    const ModelOptions& options, const Weights& weights, int64_t vocabulary)
    : vocabulary_(vocabulary), width_(options.output_width()), projection_(options, weights) {
  const AdaptiveOptions& adaptive = options.adaptive;
  const std::string name = "output.adaptive.";
  const std::string bands = "decoder.embedding.bands.";
  const bool tied = options.tie != Tying::kNone;
  if (tied) {
    head_words_ = weights.matrix(bands + "table0");
    if (weights.contains(name + "head_projection"))
      head_projection_ = weights.matrix(name + "head_projection");
  } else {
    head_words_ = weights.matrix(name + "head");
  }
  const std::vector<int64_t> ends = band_ends(adaptive.softmax_cutoffs, vocabulary);
  if (tied && ends.size() > 1)
    classes_ = weights.matrix(name + "class_projection");
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const std::string own = concat(name, "tail", i);
    tails_.push_back(
        {ends[i],
         ends[i + 1],
         adaptive.tie_projections ? weights.transposed(concat(bands, "projection", i + 1))
                                  : weights.matrix(own + "_projection"),
         tied ? weights.matrix(concat(bands, "table", i + 1)) : weights.matrix(own + "_words")});
  }
}

void AdaptiveOutput::Tail::logits(
    int64_t rows, const float* x, float* out, Workspace& space) const {
  Workspace::Frame frame(space);
  float* const narrow = frame.take(rows * projection.weight.outputs());
  projection.run({.rows = rows, .x = x, .y = narrow});
  words.run({.rows = rows, .x = narrow, .y = out});
}

float* AdaptiveOutput::head_logits(int64_t rows, const float* x, Workspace::Frame& frame) const {
  const int64_t size = choices();
  float* const out = frame.take(rows * size);
  const float* words = x;
  if (head_projection_) {
    float* const projected = frame.take(rows * head_projection_->weight.outputs());
    head_projection_->run({.rows = rows, .x = x, .y = projected});
    words = projected;
  }
  head_words_.run({.rows = rows, .x = words, .y = out, .y_stride = size});
  if (classes_)
    classes_->run({.rows = rows, .x = x, .y = out + head_size(), .y_stride = size});
  return out;
}

void AdaptiveOutput::log_probabilities(
    int64_t rows, const float* hidden, float* out, Workspace& space) const {
  Workspace::Frame frame(space);
  expand(rows, projection_.run(rows, hidden, frame), out, space);
}

void AdaptiveOutput::expand(int64_t rows, const float* x, float* out, Workspace& space) const {
  Workspace::Frame frame(space);
  const float* const all = head(rows, x, frame);
  const int64_t words = head_size(), size = choices();
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(all + r * size, words, out + r * vocabulary_);
  for (size_t i = 0; i < tails_.size(); ++i) {
    const Tail& tail = tails_[i];
    Workspace::Frame inner(space);
    float* const inside = inner.take(rows * tail.size());
    tail.run(rows, x, inside, space);
    for (int64_t r = 0; r < rows; ++r) {
      const float own = all[r * size + words + static_cast<int64_t>(i)];
      for (int64_t w = 0; w < tail.size(); ++w)
        out[r * vocabulary_ + tail.begin + w] = inside[r * tail.size() + w] + own;
    }
  }
}

void AdaptiveOutput::candidates(
    const float* hidden,
    const RowConstraint& constraint,
    int64_t count,
    std::vector<Candidate>& out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const float* const x = projection_.run(1, hidden, frame);
  const StepConstraints constraints = {.rows = {&constraint, 1}};
  if (constraint.forced < 0) {
    BestCandidates best(constraints, /*row=*/0, count, out);
    add_best(x, best, space);
    best.finish();
    if (!out.empty())
      return;
  }
  float* const all = frame.take(vocabulary_);
  expand(1, x, all, space);
  select_row({span_of(all, vocabulary_)}, constraints, /*row=*/0, count, out);
}

/// A word of a tail is at most as probable as the tail, and tails come in
/// ascending order of their words: most of them need not be multiplied.
void AdaptiveOutput::add_best(const float* x, BestCandidates& best, Workspace& space) const {
  Workspace::Frame frame(space);
  const float* const logits = head_logits(1, x, frame);
  const WordScores head = softmax_scores(span_of(logits, choices()), frame);
  WordScores words = head;
  words.logits = span_of(logits, head_size());
  best.add(words);
  for (size_t i = 0; i < tails_.size(); ++i) {
    const Tail& tail = tails_[i];
    const float own = head.log_probability(logits[words.logits.size() + i]);
    if (!best.admits(own))
      continue;
    Workspace::Frame inner(space);
    float* const inside = inner.take(tail.size());
    tail.logits(1, x, inside, space);
    WordScores scores = softmax_scores(span_of(inside, tail.size()), inner);
    scores.first = static_cast<int32_t>(tail.begin);
    scores.band_cost = -own;
    best.add(scores);
  }
}

void AdaptiveOutput::score_tail(
    const Tail& tail,
    std::span<const int32_t> words,
    const float* x,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const auto rows = static_cast<int64_t>(words.size());
  int64_t* const places = frame.take<int64_t>(rows);
  float* const own = frame.take(rows * width_);
  int64_t found = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t word = words[static_cast<size_t>(r)];
    if (word < tail.begin || word >= tail.end)
      continue;
    std::copy_n(x + r * width_, width_, own + found * width_);
    places[found++] = r;
  }
  if (found == 0)
    return;
  const int64_t most = std::min(found, rows_in_chunk(tail.size()));
  float* const inside = frame.take(most * tail.size());
  for (int64_t first = 0; first < found; first += most) {
    const int64_t count = std::min(most, found - first);
    tail.run(count, own + first * width_, inside, space);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t r = places[first + i];
      out[r] += inside[i * tail.size() + words[static_cast<size_t>(r)] - tail.begin];
    }
  }
}

void AdaptiveOutput::score(
    std::span<const int32_t> words, const float* hidden, float* out, Workspace& space) const {
  Workspace::Frame frame(space);
  const auto rows = static_cast<int64_t>(words.size());
  const float* const x = projection_.run(rows, hidden, frame);
  const int64_t size = choices();
  const int64_t most = std::min(rows, rows_in_chunk(size));
  for (int64_t first = 0; first < rows; first += most) {
    Workspace::Frame inner(space);
    const int64_t count = std::min(most, rows - first);
    const float* const all = head(count, x + first * width_, inner);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t word = words[static_cast<size_t>(first + i)];
      check_word(word, vocabulary_);
      int64_t place = word;
      for (size_t tail = 0; tail < tails_.size(); ++tail)
        if (word >= tails_[tail].begin)
          place = head_size() + static_cast<int64_t>(tail);
      out[first + i] = all[i * size + place];
    }
  }
  for (const Tail& tail : tails_)
    score_tail(tail, words, x, out, space);
}

}  // namespace

std::unique_ptr<Output> make_adaptive_output(
    const ModelOptions& options, const Weights& weights, int64_t vocabulary) {
  return std::make_unique<AdaptiveOutput>(options, weights, vocabulary);
}

}  // namespace seqconv::internal::runtime
