#pragma once

#include <limits>
#include <utility>

#include "kernels/common/tiles.h"
#include "kernels/conv/conv_kernels.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/random_words.h"

namespace seqconv::kernels {

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

/// Some positions of some neighbouring heads.
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
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  TapDrop drop;
};

template <class Args>
TapOptions tap_options(const Args& args) {
  return {args.normalization, args.renormalize_edges, args.drop};
}

/// The taps of a block, made from logits in memory of its own: row by row,
/// a segment of tap_pitch(K) for every head, zero beyond K.
template <class L, class A = AccumulatorOf<L>, int64_t kInline = 0>
class TapRows {
 public:
  TapRows(
      const ConvShape& shape,
      const TapOptions& options,
      const Logits<const L>& logits,
      Isa isa)
      : shape_(shape),
        options_(options),
        logits_(logits),
        rows_(conv_kernels<L, A>(isa)),
        ops_(tap_ops<A>(isa)),
        isa_(isa),
        pitch_(tap_pitch(shape.kernel_size)) {}

  /// Elements between heads, and between rows.
  int64_t pitch() const { return pitch_; }
  int64_t row_stride() const { return row_stride_; }

  /// What a convolution uses; row `row` of head `head` of the block.
  const A* taps(int64_t row, int64_t head) {
    return current().data() + row * row_stride_ + head * pitch_;
  }

  /// Makes taps(). All positions of the block are real.
  void make(const TapBlock& block) {
    complete_ = false;
    begin(block);
    make_rows(block, 0, block.rows);
    drop(block, 0, block.rows);
  }

  /// Makes taps(), keeping what backward() needs. Positions that are not real
  /// have zero taps.
  void make_normalized(const TapBlock& block) {
    complete_ = true;
    begin(block);
    const int64_t from = std::clamp<int64_t>(-block.first, 0, block.rows);
    const int64_t to =
        std::clamp<int64_t>(block.valid - block.first, from, block.rows);
    if (to > from)
      make_rows(block, from, to);
    drop(block, from, to);
    A* const made = current().data();
    std::fill_n(made, from * row_stride_, A(0));
    std::fill_n(made + to * row_stride_, (block.rows - to) * row_stride_, A(0));
  }

  /// Gradients `grad` of taps, which lie as taps() do and which it may change,
  /// -> those of the logits, rows of all heads of the block `out_stride`
  /// apart; after make_normalized, for rows [row, row + rows) of the block.
  void backward(
      const TapBlock& block,
      int64_t row,
      int64_t rows,
      A* grad,
      L* out,
      int64_t out_stride) {
    const int64_t K = shape_.kernel_size, at = row * row_stride_;
    if (options_.drop.active()) {
      const A* const factors = factors_.data() + at;
      for (int64_t i = 0; i < rows * row_stride_; ++i)
        grad[i] *= factors[i];
    }
    const TapGradient<L, A> tile = {
        .w = normalized_.data() + at,
        .grad = grad,
        .out = out,
        .out_stride = out_stride,
        .rows = rows,
        .heads = block.heads,
        .kernel_size = K};
    if (options_.normalization == Normalization::kSoftmax)
      return rows_.softmax_backward(tile);
    if (options_.normalization != Normalization::kNone) {
      widened_.reserve(rows * row_stride_);
      rows_.widen_taps(logit_tile(block, row, row + rows, widened_.data()));
      ops_.normalize_backward(
          options_.normalization,
          widened_.data(),
          grad,
          rows * block.heads,
          K);
    }
    rows_.narrow_taps(tile);
  }

 private:
  Scratch<A, kInline>& current() {
    return options_.drop.active() && complete_ ? dropped_ : normalized_;
  }

  void begin(const TapBlock& block) {
    row_stride_ = block.heads * pitch_;
    const int64_t count = block.rows * row_stride_ + kTapSlack;
    normalized_.reserve(count);
    if (options_.drop.active() && complete_) {
      dropped_.reserve(count);
      factors_.reserve(count);
    }
  }

  /// Rows of logits [from, to) of the block -> taps at `w`.
  TapTile<L, A>
  logit_tile(const TapBlock& block, int64_t from, int64_t to, A* w) const {
    const int64_t K = shape_.kernel_size;
    return {
        .logits = logits_.data +
            logits_.index(block.batch, block.first + from, block.head * K),
        .logit_stride = logits_.row_stride,
        .rows = to - from,
        .heads = block.heads,
        .kernel_size = K,
        .w = w};
  }

  /// Rows of logits [from, to) -> taps.
  void make_rows(const TapBlock& block, int64_t from, int64_t to) {
    A* const w = normalized_.data() + from * row_stride_;
    const TapTile<L, A> tile = logit_tile(block, from, to, w);
    if (options_.normalization != Normalization::kSoftmax) {
      rows_.widen_taps(tile);
      return ops_.normalize(
          options_.normalization,
          w,
          tile.rows * block.heads,
          shape_.kernel_size);
    }
    rows_.softmax(tile);
    if (options_.renormalize_edges)
      for (int64_t t = from; t < to; ++t)
        renormalize(block, t);
  }

  /// Taps of row t that meet an input: [begin, end).
  std::pair<int64_t, int64_t> meeting(const TapBlock& block, int64_t t) const {
    const int64_t K = shape_.kernel_size;
    const int64_t origin = block.seen + block.first + t - shape_.padding_left;
    const int64_t begin = std::clamp<int64_t>(-origin, 0, K);
    return {begin, std::clamp<int64_t>(block.valid - origin, begin, K)};
  }

  /// At the edges: softmax over the taps that meet an input.
  void renormalize(const TapBlock& block, int64_t t) {
    const int64_t K = shape_.kernel_size;
    const auto [begin, end] = meeting(block, t);
    if (begin == 0 && end == K)
      return;
    const auto tile =
        logit_tile(block, t, t + 1, normalized_.data() + t * row_stride_);
    widened_.reserve(block.heads * K);
    A* const logits = widened_.data();
    for (int64_t i = 0; i < block.heads * K; ++i)
      logits[i] = i % K >= begin && i % K < end
          ? widen(tile.logits[i])
          : -std::numeric_limits<A>::infinity();
    conv_kernels<A, A>(isa_).softmax(
        {.logits = logits,
         .logit_stride = block.heads * K,
         .rows = 1,
         .heads = block.heads,
         .kernel_size = K,
         .w = tile.w});
  }

  /// DropConnect on rows [from, to): their taps -> taps().
  void drop(const TapBlock& block, int64_t from, int64_t to) {
    if (!options_.drop.active())
      return;
    if (complete_)
      std::copy_n(
          normalized_.data() + from * row_stride_,
          (to - from) * row_stride_,
          dropped_.data() + from * row_stride_);
    constexpr int64_t kWords = 2048;  // of the first-level cache
    const TapDrop& drop = options_.drop;
    const int64_t K = shape_.kernel_size, count = block.heads * K;
    const int64_t step = std::max<int64_t>(1, kWords / count);
    words_.reserve(step * (count + kRandomWordsSlack));
    for (int64_t t = from; t < to; t += step) {
      const int64_t rows = std::min(step, to - t), at = t * row_stride_;
      const WordRows drawn = words(
          logits_.index(block.batch, block.first + t, block.head * K),
          rows,
          count);
      ops_.drop(
          {.taps = current().data() + at,
           .factors = complete_ ? factors_.data() + at : nullptr,
           .words = drawn.words,
           .words_stride = drawn.stride,
           .rows = rows,
           .segments = block.heads,
           .kernel_size = K,
           .threshold = drop.mask != nullptr ? 1 : drop_threshold(drop.p),
           .scale = static_cast<A>(1.0 / (1.0 - drop.p))});
    }
  }

  /// Words for rows of taps, `count` each, of which the first has the number
  /// `first`: random ones, or the mask's.
  WordRows words(int64_t first, int64_t rows, int64_t count) {
    const TapDrop& drop = options_.drop;
    if (drop.mask == nullptr)
      return random_word_rows(
          drop.seed,
          static_cast<uint64_t>(first),
          logits_.row_stride,
          rows,
          count,
          words_.data());
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(
          drop.mask + first + r * logits_.row_stride,
          count,
          words_.data() + r * count);
    return {words_.data(), count};
  }

  const ConvShape& shape_;
  const TapOptions options_;
  const Logits<const L> logits_;
  const ConvKernels<L, A>& rows_;
  const TapOps<A>& ops_;
  const Isa isa_;
  int64_t pitch_;
  int64_t row_stride_ = 0;
  bool complete_ = false;
  Scratch<A, kInline> normalized_;
  Scratch<A, kInline> factors_;
  Scratch<A, kInline> dropped_;
  Scratch<A, kInline> widened_;
  Scratch<uint32_t> words_;
};

}  // namespace seqconv::kernels
