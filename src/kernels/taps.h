#pragma once

#include <limits>

#include "kernels/normalization.h"
#include "kernels/tile_ops.h"
#include "kernels/tiles.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/random_words.h"

namespace seqconv::kernels {

/// Raw kernels of type L: those of position t of sequence b and head h begin at
/// b * batch_stride + t * row_stride + h * K. Strides of zero: shared by all.
template <class L>
struct RawKernels {
  L* data = nullptr;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;

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
  int64_t seen = 0;   ///< positions before the first raw kernel
};

/// How raw kernels become taps.
struct TapOptions {
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  TapDrop drop;
};

template <class Args>
TapOptions tap_options(const Args& args) {
  return {args.normalization, args.renormalize_edges, args.drop};
}

/// The taps of a block, made from raw kernels in memory of its own: rows of
/// heads * K without gaps.
template <class L, class A = AccumulatorOf<L>, int64_t kInline = 0>
class TapRows {
 public:
  TapRows(
      const ConvShape& shape,
      const TapOptions& options,
      const RawKernels<const L>& raw,
      Isa isa)
      : shape_(shape),
        options_(options),
        raw_(raw),
        rows_(row_ops<L, A>(isa)),
        ops_(tap_ops<A>(isa)) {}

  int64_t pitch() const { return pitch_; }

  /// What a convolution uses; row t of head `head` of the block. Multiply its
  /// outputs by scale(), except after normalize().
  const A* taps(int64_t row, int64_t head) {
    return current().data() + row * pitch_ + head * shape_.kernel_size;
  }
  /// [rows, heads].
  const A* scale() { return scale_.data(); }

  /// Makes taps() and scale(). All positions of the block are real.
  void make(const TapBlock& block) {
    complete_ = false;
    begin(block, block.rows);
    load(block, 0, block.rows);
    make_rows(block, 0, block.rows);
    drop(block, 0, block.rows);
  }

  /// Makes taps() complete, keeping what backward() needs. Positions that are
  /// not real have zero taps.
  void make_normalized(const TapBlock& block) {
    complete_ = true;
    begin(block, block.rows);
    const int64_t from = std::clamp<int64_t>(-block.first, 0, block.rows);
    const int64_t to =
        std::clamp<int64_t>(block.valid - block.first, from, block.rows);
    A* const w = normalized_.data();
    std::fill_n(w, from * pitch_, A(0));
    std::fill_n(w + to * pitch_, (block.rows - to) * pitch_, A(0));
    if (to > from) {
      load(block, from, to);
      make_rows(block, from, to);
      ops_.scale(
          w + from * pitch_,
          (to - from) * block.heads,
          shape_.kernel_size,
          scale_.data() + from * block.heads);
    }
    if (options_.drop.active()) {
      dropped_.reserve(block.rows * pitch_ + kTapSlack);
      std::copy_n(w, block.rows * pitch_, dropped_.data());
      factors_.fill_zero(block.rows * pitch_);
      if (to > from)
        drop(block, from, to);
    }
  }

  /// Gradient of taps -> gradient of raw kernels, in place, after
  /// make_normalized; `row` and `head` count within the block, rows are
  /// grad_stride apart.
  void backward(
      const TapBlock& block,
      int64_t row,
      int64_t rows,
      int64_t head,
      A* grad,
      int64_t grad_stride) {
    const int64_t K = shape_.kernel_size;
    for (int64_t t = 0; t < rows; ++t) {
      const int64_t at = (row + t) * pitch_ + head * K;
      A* const g = grad + t * grad_stride;
      if (options_.drop.active())
        ops_.multiply(g, factors_.data() + at, K);
      if (options_.normalization == Normalization::kSoftmax) {
        ops_.softmax_backward(normalized_.data() + at, g, 0, 1, K);
        continue;
      }
      raw_row_.reserve(K + kTapSlack);
      rows_.widen(
          raw_.data +
              raw_.index(
                  block.batch,
                  block.first + row + t,
                  (block.head + head) * K),
          K,
          raw_row_.data());
      normalize_row_backward(options_.normalization, raw_row_.data(), g, K);
    }
  }

 private:
  Scratch<A, kInline>& current() {
    return options_.drop.active() && complete_ ? dropped_ : normalized_;
  }

  void begin(const TapBlock& block, int64_t rows) {
    pitch_ = block.heads * shape_.kernel_size;
    normalized_.reserve(rows * pitch_ + kTapSlack);
    scale_.reserve(rows * block.heads);
    if (options_.drop.active())
      factors_.reserve(rows * pitch_ + kTapSlack);
  }

  void load(const TapBlock& block, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t)
      load_row(block, t);
  }
  void load_row(const TapBlock& block, int64_t t) {
    rows_.widen(
        raw_.data +
            raw_.index(
                block.batch,
                block.first + t,
                block.head * shape_.kernel_size),
        pitch_,
        normalized_.data() + t * pitch_);
  }

  /// Raw rows [from, to) -> taps without their common factor, and that factor.
  void make_rows(const TapBlock& block, int64_t from, int64_t to) {
    const int64_t K = shape_.kernel_size, count = (to - from) * block.heads;
    A* const w = normalized_.data() + from * pitch_;
    A* const scale = scale_.data() + from * block.heads;
    if (options_.normalization != Normalization::kSoftmax) {
      for (int64_t i = 0; i < count; ++i)
        normalize_row(options_.normalization, w + i * K, K);
      std::fill_n(scale, count, A(1));
      return;
    }
    // A single tap is 1 and has no gradient, exactly: it is divided by itself.
    if (K > 1 && ops_.exp(w, count * K)) {
      if (options_.renormalize_edges)
        cut_edges(block, from, to, A(0));
      return ops_.inverse_sums(w, count, K, scale);
    }
    load(block, from, to);
    if (options_.renormalize_edges)
      cut_edges(block, from, to, -std::numeric_limits<A>::infinity());
    ops_.softmax(w, count, K);
    std::fill_n(scale, count, A(1));
  }

  /// Taps that would meet inputs outside the sequence become `value`.
  void cut_edges(const TapBlock& block, int64_t from, int64_t to, A value) {
    const int64_t K = shape_.kernel_size;
    for (int64_t t = from; t < to; ++t) {
      const int64_t origin = block.seen + block.first + t - shape_.padding_left;
      const int64_t low = std::clamp<int64_t>(-origin, 0, K);
      const int64_t high = std::clamp<int64_t>(block.valid - origin, low, K);
      if (low == 0 && high == K)
        continue;
      for (int64_t h = 0; h < block.heads; ++h) {
        A* const w = normalized_.data() + t * pitch_ + h * K;
        std::fill(w, w + low, value);
        std::fill(w + high, w + K, value);
      }
    }
  }

  /// DropConnect on rows [from, to).
  void drop(const TapBlock& block, int64_t from, int64_t to) {
    if (!options_.drop.active())
      return;
    for (int64_t t = from; t < to; ++t)
      draw(
          raw_.index(
              block.batch,
              block.first + t,
              block.head * shape_.kernel_size),
          factors_.data() + t * pitch_);
    ops_.multiply(
        current().data() + from * pitch_,
        factors_.data() + from * pitch_,
        (to - from) * pitch_);
  }

  /// 0 or 1/(1-p) for the taps whose numbers begin at `first`.
  void draw(int64_t first, A* factors) {
    const TapDrop& drop = options_.drop;
    const A scale = static_cast<A>(1.0 / (1.0 - drop.p));
    if (drop.mask != nullptr) {
      for (int64_t j = 0; j < pitch_; ++j)
        factors[j] = drop.mask[first + j] != 0 ? scale : A(0);
      return;
    }
    const uint32_t threshold = drop_threshold(drop.p);
    words_.reserve(pitch_ + kRandomWordsSlack);
    const uint32_t* const words = random_words(
        drop.seed,
        static_cast<uint64_t>(first),
        pitch_,
        words_.data());
    for (int64_t j = 0; j < pitch_; ++j)
      factors[j] = words[j] >= threshold ? scale : A(0);
  }

  const ConvShape& shape_;
  const TapOptions options_;
  const RawKernels<const L> raw_;
  const RowOps<L, A>& rows_;
  const TapOps<A>& ops_;
  int64_t pitch_ = 0;
  bool complete_ = false;
  Scratch<A, kInline> normalized_;
  Scratch<A, kInline> scale_;
  Scratch<A, kInline> factors_;
  Scratch<A, kInline> dropped_;
  Scratch<A, kInline> raw_row_;
  Scratch<uint32_t> words_;
};

}  // namespace seqconv::kernels
