#pragma once

#include "kernels/normalization.h"
#include "kernels/tiles.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/random_words.h"

namespace seqconv::kernels {

/// Turns rows of K raw weights (logits) of type L into taps of type A, in
/// dense rows of pitch() elements, zero beyond K.
template <class L, class A = AccumulatorOf<L>>
class TapMaker {
 public:
  TapMaker(
      Isa isa,
      int64_t kernel_size,
      Normalization normalization,
      const TapDrop& drop)
      : rows_(row_ops<L, A>(isa)),
        tile_(tile_ops<A>(isa)),
        kernel_size_(kernel_size),
        normalization_(normalization),
        drop_(drop) {}

  int64_t pitch() const { return lane_pitch<A>(kernel_size_); }
  bool drops() const { return drop_.active(); }

  /// taps [rows, pitch] = normalised rows of `raw`, `stride` apart.
  void normalize(const L* raw, int64_t stride, int64_t rows, A* taps) const {
    rows_.load(raw, stride, rows, kernel_size_, taps, pitch());
    if (normalization_ == Normalization::kSoftmax)
      return tile_.softmax(taps, pitch(), rows, kernel_size_);
    for (int64_t t = 0; t < rows; ++t)
      normalize_row(normalization_, taps + t * pitch(), kernel_size_);
  }

  /// factors [rows, pitch] = 0 or 1/(1-p) for the taps whose number is
  /// first + row * stride + j.
  void factors(int64_t first, int64_t stride, int64_t rows, A* factors) {
    const A scale = static_cast<A>(1.0 / (1.0 - drop_.p));
    for (int64_t t = 0; t < rows; ++t, first += stride, factors += pitch()) {
      if (drop_.mask != nullptr)
        masked_row(first, scale, factors);
      else
        seeded_row(first, scale, factors);
      std::fill(factors + kernel_size_, factors + pitch(), A(0));
    }
  }

  /// Gradient with respect to the taps -> gradient with respect to the raw
  /// weights, in place. `taps` are the normalised ones, before DropConnect.
  void backward(
      const L* raw,
      int64_t stride,
      const A* taps,
      const A* factors,
      int64_t rows,
      A* grad) {
    if (drops())
      tile_.multiply(grad, factors, rows * pitch());
    if (normalization_ == Normalization::kSoftmax)
      return tile_.softmax_backward(taps, grad, pitch(), rows);
    raw_.reserve(pitch());
    for (int64_t t = 0; t < rows; ++t) {
      rows_.load(
          raw + t * stride,
          stride,
          1,
          kernel_size_,
          raw_.data(),
          pitch());
      normalize_row_backward(
          normalization_,
          raw_.data(),
          grad + t * pitch(),
          kernel_size_);
    }
  }

 private:
  void masked_row(int64_t first, A scale, A* factors) const {
    for (int64_t j = 0; j < kernel_size_; ++j)
      factors[j] = drop_.mask[first + j] != 0 ? scale : A(0);
  }

  void seeded_row(int64_t first, A scale, A* factors) {
    const uint32_t threshold = drop_threshold(drop_.p);
    words_.reserve(kernel_size_ + kRandomWordsSlack);
    const uint32_t* const words = random_words(
        drop_.seed,
        static_cast<uint64_t>(first),
        kernel_size_,
        words_.data());
    for (int64_t j = 0; j < kernel_size_; ++j)
      factors[j] = words[j] >= threshold ? scale : A(0);
  }

  const RowOps<L, A>& rows_;
  const TileOps<A>& tile_;
  int64_t kernel_size_;
  Normalization normalization_;
  TapDrop drop_;
  Scratch<uint32_t> words_;
  Scratch<A> raw_;
};

}  // namespace seqconv::kernels
