#include "output.h"

#include <algorithm>
#include <optional>

#include "output_rows.h"

namespace seqconv::runtime {
namespace {

class SoftmaxOutput : public Output {
 public:
  SoftmaxOutput(
      const ModelOptions& options,
      const Weights& weights,
      const std::string& words)
      : logits_(
            options.dim,
            Projection(options, weights),
            weights.matrix(words)),
        vocabulary_(logits_.words()) {}

  void log_probabilities(
      int64_t rows,
      const float* hidden,
      float* out,
      Workspace& space) const override {
    logits_.run(rows, hidden, out, space);
    normalize(rows, vocabulary_, out);
  }

  void score(
      std::span<const int32_t> words,
      const float* hidden,
      float* out,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const auto rows = static_cast<int64_t>(words.size());
    const int64_t most = std::min(rows, rows_in_chunk(vocabulary_));
    float* const all = frame.take(most * vocabulary_);
    for (int64_t first = 0; first < rows; first += most) {
      const int64_t count = std::min(most, rows - first);
      log_probabilities(count, hidden + first * logits_.dim(), all, space);
      for (int64_t i = 0; i < count; ++i) {
        const int32_t word = words[static_cast<size_t>(first + i)];
        check_word(word, vocabulary_);
        out[first + i] = all[i * vocabulary_ + word];
      }
    }
  }

  const WordLogits& logits() const override { return logits_; }

 private:
  WordLogits logits_;
  int64_t vocabulary_;
};

/// Adaptive softmax (Grave et al. 2017).
class AdaptiveOutput : public Output {
 public:
  AdaptiveOutput(
      const ModelOptions& options,
      const Weights& weights,
      int64_t vocabulary);

  void log_probabilities(
      int64_t rows,
      const float* hidden,
      float* out,
      Workspace& space) const override;
  void score(
      std::span<const int32_t> words,
      const float* hidden,
      float* out,
      Workspace& space) const override;
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
    /// x [rows, D] -> log-probabilities inside the tail [rows, size()].
    void run(int64_t rows, const float* x, float* out, Workspace& space) const;
  };

  int64_t head_size() const {
    return tails_.empty() ? vocabulary_ : tails_[0].begin;
  }
  /// x [rows, D] -> log-probabilities of head words and tails.
  float* head(int64_t rows, const float* x, Workspace::Frame& frame) const;
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
    const ModelOptions& options,
    const Weights& weights,
    int64_t vocabulary)
    : vocabulary_(vocabulary),
      width_(options.output_width()),
      projection_(options, weights) {
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
  const std::vector<int64_t> ends =
      band_ends(adaptive.softmax_cutoffs, vocabulary);
  if (tied && ends.size() > 1)
    classes_ = weights.matrix(name + "class_projection");
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const std::string own = concat(name, "tail", i);
    tails_.push_back(
        {ends[i],
         ends[i + 1],
         adaptive.tie_projections
             ? weights.transposed(concat(bands, "projection", i + 1))
             : weights.matrix(own + "_projection"),
         tied ? weights.matrix(concat(bands, "table", i + 1))
              : weights.matrix(own + "_words")});
  }
}

void AdaptiveOutput::Tail::run(
    int64_t rows,
    const float* x,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  float* const narrow = frame.take(rows * projection.weight.outputs());
  projection.run({.rows = rows, .x = x, .y = narrow});
  words.run({.rows = rows, .x = narrow, .y = out});
  normalize(rows, size(), out);
}

float* AdaptiveOutput::head(
    int64_t rows,
    const float* x,
    Workspace::Frame& frame) const {
  const int64_t size = head_size() + static_cast<int64_t>(tails_.size());
  float* const out = frame.take(rows * size);
  const float* words = x;
  if (head_projection_) {
    float* const projected =
        frame.take(rows * head_projection_->weight.outputs());
    head_projection_->run({.rows = rows, .x = x, .y = projected});
    words = projected;
  }
  head_words_.run({.rows = rows, .x = words, .y = out, .y_stride = size});
  if (classes_)
    classes_->run(
        {.rows = rows, .x = x, .y = out + head_size(), .y_stride = size});
  normalize(rows, size, out);
  return out;
}

void AdaptiveOutput::log_probabilities(
    int64_t rows,
    const float* hidden,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const float* const x = projection_.run(rows, hidden, frame);
  const float* const all = head(rows, x, frame);
  const int64_t words = head_size();
  const int64_t size = words + static_cast<int64_t>(tails_.size());
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
        out[r * vocabulary_ + tail.begin + w] =
            inside[r * tail.size() + w] + own;
    }
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
      out[r] +=
          inside[i * tail.size() + words[static_cast<size_t>(r)] - tail.begin];
    }
  }
}

void AdaptiveOutput::score(
    std::span<const int32_t> words,
    const float* hidden,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const auto rows = static_cast<int64_t>(words.size());
  const float* const x = projection_.run(rows, hidden, frame);
  const int64_t size = head_size() + static_cast<int64_t>(tails_.size());
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

Projection::Projection(const ModelOptions& options, const Weights& weights) {
  if (options.output_width() != options.dim)
    linear_ = weights.matrix("output.projection");
}

const float* Projection::run(
    int64_t rows,
    const float* hidden,
    Workspace::Frame& frame) const {
  if (!linear_)
    return hidden;
  float* const projected = frame.take(rows * linear_->weight.outputs());
  linear_->run({.rows = rows, .x = hidden, .y = projected});
  return projected;
}

void WordLogits::run(
    int64_t rows,
    const float* hidden,
    float* out,
    Workspace& space) const {
  Workspace::Frame frame(space);
  words_.run(
      {.rows = rows, .x = projection_.run(rows, hidden, frame), .y = out});
}

std::unique_ptr<Output> make_output(
    const ModelOptions& options,
    const Weights& weights,
    int64_t vocabulary,
    const std::string& words) {
  if (!options.adaptive.softmax_cutoffs.empty())
    return std::make_unique<AdaptiveOutput>(options, weights, vocabulary);
  return std::make_unique<SoftmaxOutput>(
      options,
      weights,
      words.empty() ? "output.weight" : words);
}

}  // namespace seqconv::runtime
