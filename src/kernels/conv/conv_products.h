#pragma once

#include <type_traits>

#include "kernels/conv/conv_tiles.h"

namespace seqconv::kernels {

/// Products of rows of grad_y with rows of x, both [B, T, C], which make the
/// gradients of taps. Where taps are many, every row of x is read many times
/// and staged first.
template <class S, class A>
class ConvProducts {
 public:
  /// paired: rows are staged for tap_products().
  ConvProducts(
      const ConvShape& shape,
      const S* x,
      const S* grad_y,
      const ConvKernels<S, A>& ops,
      bool paired)
      : shape_(shape),
        x_(x),
        grad_y_(grad_y),
        ops_(ops),
        paired_(paired && shape.kernel_size > kFewestTaps),
        staged_(
            (tile_rows(shape.kernel_size) + shape.kernel_size + kTapSlack) *
            kStagePitch) {}

  /// Whether most rows of x are read where they lie: whole vectors of them.
  /// Cutting a short sequence in three would cost more than it saves.
  bool reads_directly() const {
    const int64_t K = shape_.kernel_size;
    return std::is_same_v<S, A> && K <= kDirectTaps &&
        shape_.head_channels() % kTapSlack == 0 && shape_.steps > tile_rows(K);
  }

  /// Adds the rows of x that another place needs.
  void prefetch_inputs(PrefetchRows& rows, const ConvPlace& place) const {
    const int64_t after = shape_.kernel_size - 1 - shape_.padding_left;
    prefetch_rows(rows, shape_, place, x_, shape_.head_channels(), after);
  }

  /// Calls work(row, tile) for the real rows of a place, from `row` on, and
  /// `width` channels from channel c, a stage's width at a time; prefetches
  /// `next_rows` between the first ones.
  template <class Work>
  void run(
      const ConvPlace& at,
      int64_t c,
      int64_t width,
      PrefetchRows next_rows,
      const Work& work) {
    const auto [from, to] = direct_rows(at);
    for (int64_t i = 0; i < width; i += kStagePitch) {
      Part part = {
          .origin = at.batch * shape_.steps * shape_.channels + c + i,
          .first = at.first,
          .valid = at.valid,
          .channels = std::min(kStagePitch, width - i),
          .add = i > 0,
          .next_rows = i == 0 ? &next_rows : nullptr};
      run_staged(part, 0, from, work);
      if constexpr (std::is_same_v<S, A>)
        if (from < to) {
          const int64_t C = shape_.channels;
          const int64_t row = at.first - shape_.padding_left + from;
          work(
              from,
              tile(part, from, to, x_ + part.origin + row * C, C, false));
        }
      run_staged(part, to, at.real(), work);
    }
  }

 private:
  /// Most taps for which rows of x and grad_y share cache sets without loss.
  static constexpr int64_t kDirectTaps = 8;

  /// Some channels of a place.
  struct Part {
    int64_t origin;  ///< of its sequence, at the first channel
    int64_t first;   ///< position of row 0
    int64_t valid;
    int64_t channels;
    bool add;
    PrefetchRows* next_rows;  ///< null: nothing
  };

  /// Rows [from, to) of a place that see nothing outside the sequence and are
  /// read directly; the others are staged.
  std::pair<int64_t, int64_t> direct_rows(const ConvPlace& at) const {
    const int64_t real = at.real();
    if (!reads_directly())
      return {real, real};
    const int64_t begin = at.first - shape_.padding_left;
    const int64_t from = std::clamp<int64_t>(-begin, 0, real);
    const int64_t to =
        std::clamp(at.valid - begin - (block_of_taps() - 1), from, real);
    return {from, to};
  }

  /// What is read of x for every row of grad_y.
  int64_t block_of_taps() const { return tap_pitch(shape_.kernel_size); }

  ProductTile<S, A> tile(
      const Part& part,
      int64_t from,
      int64_t to,
      const A* x,
      int64_t x_stride,
      bool paired) const {
    const int64_t C = shape_.channels;
    return {
        .g = grad_y_ + part.origin + (part.first + from) * C,
        .g_stride = C,
        .x = x,
        .x_stride = x_stride,
        .paired = paired,
        .kernel_size = shape_.kernel_size,
        .rows = to - from,
        .channels = part.channels,
        .add = part.add,
        .next_rows = part.next_rows};
  }

  template <class Work>
  void
  run_staged(const Part& part, int64_t from, int64_t to, const Work& work) {
    if (from == to)
      return;
    const int64_t C = shape_.channels;
    const int64_t begin = part.first + from - shape_.padding_left;
    ops_.stage(
        {.in = x_ + part.origin + begin * C,
         .in_stride = C,
         .first = -begin,
         .last = part.valid - begin,
         .rows = to - from + block_of_taps() - 1,
         .channels = part.channels,
         .paired = paired_},
        staged_.data());
    work(from, tile(part, from, to, staged_.data(), kStagePitch, paired_));
  }

  const ConvShape& shape_;
  const S* x_;
  const S* grad_y_;
  const ConvKernels<S, A>& ops_;
  const bool paired_;
  Scratch<A> staged_;  // [rows + K - 1, kStagePitch]
};

}  // namespace seqconv::kernels
