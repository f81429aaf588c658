#pragma once

#include <limits>
#include <utility>

#include "kernels/common/tiles.h"
#include "kernels/conv/conv_kernels.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/dropout.h"

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
        pitch_(tap_pitch(shape.kernel_size)) {}

  /// Elements between heads, and between rows.
  int64_t pitch() const { return pitch_; }
  int64_t row_stride() const { return row_stride_; }

  /// What a convolution uses; row `row` of head `head` of the block.
  const A* taps(int64_t row, int64_t head) {
    return current().data() + row * row_stride_ + head * pitch_;
  }

  /// Makes taps() and prefetches `next_rows` (null: nothing). All positions of
  /// the block are real.
  void make(const TapBlock& block, PrefetchRows* next_rows = nullptr) {
    complete_ = false;
    begin(block);
    make_rows(block, 0, block.rows, next_rows);
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
    if (options_.drop.active())
      ops_.multiply(grad, factors_.data() + at, rows * row_stride_);
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
  void make_rows(
      const TapBlock& block,
      int64_t from,
      int64_t to,
      PrefetchRows* next_rows = nullptr) {
    const int64_t K = shape_.kernel_size;
    const int64_t segments = (to - from) * block.heads;
    A* const w = normalized_.data() + from * row_stride_;
    TapTile<L, A> tile = logit_tile(block, from, to, w);
    if (options_.normalization != Normalization::kSoftmax) {
      rows_.widen_taps(tile);
      return ops_.normalize(options_.normalization, w, segments, K);
    }
    tile.next_rows = next_rows;
    // A single tap is 1 and has no gradient, exactly: it is divided by itself.
    if (K == 1 || !rows_.softmax(tile)) {
      rows_.widen_taps(tile);
      ops_.softmax(w, segments, K);
    }
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
    const A cut = -std::numeric_limits<A>::infinity();
    A* const row = normalized_.data() + t * row_stride_;
    rows_.widen_taps(logit_tile(block, t, t + 1, row));
    for (int64_t h = 0; h < block.heads; ++h) {
      A* const w = row + h * pitch_;
      std::fill(w, w + begin, cut);
      std::fill(w + end, w + K, cut);
    }
    ops_.softmax(row, block.heads, K);
  }

  /// DropConnect on rows [from, to): their taps -> taps().
  void drop(const TapBlock& block, int64_t from, int64_t to) {
    if (!options_.drop.active())
      return;
    constexpr int64_t kWords = 2048;  // of the first-level cache
    const int64_t K = shape_.kernel_size, heads = block.heads;
    const int64_t max = std::max<int64_t>(1, kWords / K);  // segments
    const int64_t first =
        logits_.index(block.batch, block.first + from, block.head * K);
    const int64_t at = from * row_stride_;
    // Rows whose numbers follow each other are one.
    if (logits_.row_stride == heads * K) {
      const int64_t segments = (to - from) * heads;
      for (int64_t n = 0; n < segments; n += max)
        drop_rows(
            first + n * K,
            at + n * pitch_,
            1,
            std::min(max, segments - n));
      return;
    }
    const int64_t rows = std::max<int64_t>(1, max / heads);
    for (int64_t t = 0; t < to - from; t += rows)
      drop_rows(
          first + t * logits_.row_stride,
          at + t * row_stride_,
          std::min(rows, to - from - t),
          heads);
  }

  /// Rows of segments, whose numbers begin with `first` and whose taps begin
  /// with element `at`.
  void drop_rows(int64_t first, int64_t at, int64_t rows, int64_t segments) {
    const TapDrop& drop = options_.drop;
    const int64_t K = shape_.kernel_size, count = segments * K;
    words_.reserve(rows * (count + kRandomWordsSlack) + kTapSlack);
    const WordRows drawn = drop.mask != nullptr
        ? mask_rows(drop.mask + first, rows, count)
        : random_word_rows(
              drop.seed,
              static_cast<uint64_t>(first),
              logits_.row_stride,
              rows,
              count,
              words_.data());
    ops_.drop(
        {.taps = normalized_.data() + at,
         .out = current().data() + at,
         .factors = complete_ ? factors_.data() + at : nullptr,
         .words = drawn.words,
         .words_stride = drawn.stride,
         .rows = rows,
         .segments = segments,
         .kernel_size = K,
         .threshold = drop.mask != nullptr ? 1 : drop_threshold(drop.p),
         .scale = static_cast<A>(1.0 / (1.0 - drop.p))});
  }

  /// Rows of a mask as words.
  WordRows mask_rows(const uint8_t* mask, int64_t rows, int64_t count) {
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(
          mask + r * logits_.row_stride,
          count,
          words_.data() + r * count);
    return {words_.data(), count};
  }

  const ConvShape& shape_;
  const TapOptions options_;
  const Logits<const L> logits_;
  const ConvKernels<L, A>& rows_;
  const TapOps<A>& ops_;
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
