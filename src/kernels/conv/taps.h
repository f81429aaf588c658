#pragma once

#include <limits>
#include <utility>

#include "base/random.h"
#include "kernels/common/tiles.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/dropout.h"

namespace seqconv::internal::kernels {

/// Logits of type L: those of position t of sequence b and head h begin at
/// b * batch_stride + t * row_stride + h * K. Strides of zero: shared by all.
template <class L>
struct Logits {
  L* data = nullptr;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;

  bool shared() const { return row_stride == 0; }
  int64_t index(int64_t b, int64_t t, int64_t first_tap) const {
    return b * batch_stride + t * row_stride + first_tap;
  }
};

/// Logits of all positions, [B, T, H, K].
template <class L>
Logits<L> position_logits(const ConvShape& shape, L* data) {
  const int64_t row = shape.heads * shape.kernel_size;
  return {data, shape.steps * row, row};
}

/// Some real positions of some neighbouring heads.
struct TapBlock {
  int64_t batch = 0;
  int64_t first = 0;  ///< position of row 0
  int64_t rows = 0;
  int64_t head = 0;
  int64_t heads = 1;
  int64_t valid = 0;  ///< real positions of the sequence
  int64_t seen = 0;   ///< positions before the first row of logits
};

/// How logits become taps.
struct TapOptions {
  bool softmax = true;
  bool renormalize_edges = false;
  TapDrop drop;
};

template <class Args>
TapOptions tap_options(const Args& args) {
  return {args.softmax, args.renormalize_edges, args.drop};
}

/// The taps of a block, made from logits in memory of its own: row by row,
/// a segment of tap_pitch(K) for every head. Shared by all positions, they are
/// one row for all heads, made once.
template <class L, class A = AccumulatorOf<L>, int64_t kInline = 0>
class TapRows {
 public:
  TapRows(const ConvShape& shape, const TapOptions& options, const Logits<const L>& logits, Isa isa)
      : shape_(shape),
        options_(options),
        logits_(logits),
        rows_(conv_kernels<L, A>(isa)),
        isa_(isa),
        pitch_(tap_pitch(shape.kernel_size)),
        drops_(options.drop.active()) {}

  /// Whether all positions have the same taps.
  bool shared() const { return logits_.shared() && !options_.renormalize_edges; }

  /// Elements between heads, and between rows.
  int64_t pitch() const { return pitch_; }
  int64_t row_stride() const { return shared() ? 0 : block_.heads * pitch_; }

  /// What a convolution uses; row 0 of the block made last, of head `head`.
  const A* taps(int64_t head) {
    return (drops_ ? dropped_ : taps_).data() + (head - block_.head) * pitch_;
  }

  void make(const TapBlock& block) {
    if (shared() && block_.rows > 0)
      return;
    block_ = shared() ? TapBlock{.rows = 1, .heads = shape_.heads} : block;
    const int64_t count = block_.rows * block_.heads * pitch_;
    taps_.reserve(count + kTapSlack);
    const auto tile = logit_tile(0, block_.rows, taps_.data());
    if (options_.softmax) {
      rows_.softmax(tile);
      for (int64_t t = 0; options_.renormalize_edges && t < block_.rows; ++t)
        renormalize(t);
    } else {
      const int64_t H = block_.heads, K = shape_.kernel_size;
      for (int64_t n = 0; n < block_.rows * H; ++n)
        for (int64_t j = 0; j < K; ++j)
          taps_.data()[n * pitch_ + j] =
              widen(tile.logits[n / H * tile.logit_stride + n % H * K + j]);
    }
    if (drops_)
      drop(count);
  }

  /// Gradients `grad` of rows [row, row + rows) of taps, which lie as they do
  /// and which it may change, -> those of the logits, rows of all heads of the
  /// block `out_stride` apart.
  void backward(int64_t row, int64_t rows, A* grad, L* out, int64_t out_stride) {
    const int64_t width = block_.heads * pitch_, at = row * width;
    if (drops_)
      for (int64_t i = 0; i < rows * width; ++i)
        grad[i] *= factors_.data()[at + i];
    const TapGradient<L, A> tile = {
        .w = taps_.data() + at,
        .grad = grad,
        .out = out,
        .out_stride = out_stride,
        .rows = rows,
        .heads = block_.heads,
        .kernel_size = shape_.kernel_size};
    if (options_.softmax)
      return rows_.softmax_backward(tile);
    const int64_t H = block_.heads, K = shape_.kernel_size;
    for (int64_t n = 0; n < rows * H; ++n)
      rows_.narrow(grad + n * pitch_, K, out + n / H * out_stride + n % H * K);
  }

 private:
  /// The number of the first logit of a row of the block.
  int64_t number(int64_t row) const {
    return logits_.index(block_.batch, block_.first + row, block_.head * shape_.kernel_size);
  }

  /// Rows of logits of the block -> taps at `w`.
  TapTile<L, A> logit_tile(int64_t row, int64_t rows, A* w) const {
    return {
        .logits = logits_.data + number(row),
        .logit_stride = logits_.row_stride,
        .rows = rows,
        .heads = block_.heads,
        .kernel_size = shape_.kernel_size,
        .w = w};
  }

  /// Taps of row t that meet an input: [begin, end).
  std::pair<int64_t, int64_t> meeting(int64_t t) const {
    const int64_t K = shape_.kernel_size;
    const int64_t origin = block_.seen + block_.first + t - shape_.padding_left;
    const int64_t begin = std::clamp<int64_t>(-origin, 0, K);
    return {begin, std::clamp<int64_t>(block_.valid - origin, begin, K)};
  }

  /// At the edges: softmax over the taps that meet an input.
  void renormalize(int64_t t) {
    const int64_t K = shape_.kernel_size, count = block_.heads * K;
    const auto [begin, end] = meeting(t);
    if (begin == 0 && end == K)
      return;
    const auto tile = logit_tile(t, 1, taps_.data() + t * block_.heads * pitch_);
    widened_.reserve(count);
    A* const logits = widened_.data();
    for (int64_t i = 0; i < count; ++i)
      logits[i] = i % K >= begin && i % K < end ? widen(tile.logits[i])
                                                : -std::numeric_limits<A>::infinity();
    conv_kernels<A, A>(isa_).softmax(
        {.logits = logits,
         .logit_stride = count,
         .rows = 1,
         .heads = block_.heads,
         .kernel_size = K,
         .w = tile.w});
  }

  /// DropConnect on all taps of the block, `count` with what lies between.
  void drop(int64_t count) {
    constexpr int64_t kWords = 2048;  // of the first-level cache
    const TapDrop& drop = options_.drop;
    const int64_t K = shape_.kernel_size, words = block_.heads * K;
    const int64_t step = std::max<int64_t>(1, kWords / words);
    const uint32_t threshold = drop.mask != nullptr ? 1 : drop_threshold(drop.p);
    const A scale = static_cast<A>(1.0 / (1.0 - drop.p));
    words_.reserve(step * (words + kRandomWordsSlack));
    factors_.reserve(count);
    dropped_.reserve(count + kTapSlack);
    for (int64_t t = 0; t < block_.rows; ++t) {
      if (t % step == 0)
        drawn_ = draw(number(t), std::min(step, block_.rows - t), words);
      for (int64_t h = 0; h < block_.heads; ++h) {
        const int64_t at = (t * block_.heads + h) * pitch_;
        const uint32_t* const word = drawn_.words + t % step * drawn_.stride + h * K;
        for (int64_t j = 0; j < K; ++j)
          factors_.data()[at + j] = word[j] < threshold ? A(0) : scale;
        for (int64_t j = 0; j < K; ++j)
          dropped_.data()[at + j] = taps_.data()[at + j] * factors_.data()[at + j];
      }
    }
  }

  /// Words for rows of taps, `count` each, of which the first has the number
  /// `first`: random ones, or the mask's.
  WordRows draw(int64_t first, int64_t rows, int64_t count) {
    const TapDrop& drop = options_.drop;
    if (drop.mask == nullptr)
      return random_word_rows(
          drop.seed, static_cast<uint64_t>(first), logits_.row_stride, rows, count, words_.data());
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(drop.mask + first + r * logits_.row_stride, count, words_.data() + r * count);
    return {words_.data(), count};
  }

  const ConvShape& shape_;
  const TapOptions options_;
  const Logits<const L> logits_;
  const ConvKernels<L, A>& rows_;
  const Isa isa_;
  const int64_t pitch_;
  const bool drops_;
  TapBlock block_;
  Scratch<A, kInline> taps_;
  Scratch<A, kInline> dropped_;  ///< taps after DropConnect
  Scratch<A, kInline> factors_;
  Scratch<A, kInline> widened_;
  Scratch<uint32_t> words_;
  WordRows drawn_;
};

}  // namespace seqconv::internal::kernels
