#pragma once

#include "kernels/taps.h"

namespace seqconv::kernels {

/// Taps of the rows of a tile: shared by all rows when stride is 0.
template <class A>
struct TileTaps {
  const A* data = nullptr;
  int64_t stride = 0;
};

/// Convolves tiles of one head; owns the scratch memory of a thread.
template <class S, class A = AccumulatorOf<S>>
class HeadConvolver {
 public:
  HeadConvolver(const ConvShape& shape, Isa isa)
      : rows_(row_ops<S, A>(isa)),
        tile_(tile_ops<A>(isa)),
        kernel_size_(shape.kernel_size),
        pitch_(tile_pitch<A>(shape.head_channels())),
        input_((tile_rows(kernel_size_) + kernel_size_ - 1) * pitch_),
        output_(tile_rows(kernel_size_) * pitch_),
        init_(pitch_) {}

  int64_t pitch() const { return pitch_; }

  /// out[t] = bias + sum_j taps[t][j] * in[t - padding_left + j] for the rows
  /// [first, first + rows) of a head; zero from row out.valid on.
  void run(
      const Plane<const S>& in,
      const Plane<S>& out,
      int64_t first,
      int64_t rows,
      int64_t padding_left,
      const TileTaps<A>& taps,
      const A* bias = nullptr) {
    const int64_t real = std::clamp<int64_t>(out.valid - first, 0, rows);
    zero_rows(out, first + real, rows - real);
    if (real == 0)
      return;
    for (int64_t c = 0; c < in.width; c += kTileChannels<A>) {
      const int64_t width = std::min(in.width - c, kTileChannels<A>);
      const int64_t pitch = lane_pitch<A>(width);
      init_.fill_zero(pitch);
      if (bias != nullptr)
        std::copy_n(bias + c, width, init_.data());
      stage(
          rows_,
          in.channels(c, width),
          first - padding_left,
          real + kernel_size_ - 1,
          input_.data(),
          pitch);
      tile_.convolve(
          {.x = input_.data(),
           .pitch = pitch,
           .taps = taps.data,
           .tap_stride = taps.stride,
           .kernel_size = kernel_size_,
           .rows = real,
           .init = init_.data(),
           .out = output_.data()});
      rows_.store(
          output_.data(),
          pitch,
          real,
          width,
          out.data + first * out.stride + c,
          out.stride);
    }
  }

 private:
  const RowOps<S, A>& rows_;
  const TileOps<A>& tile_;
  int64_t kernel_size_;
  int64_t pitch_;
  Scratch<A> input_;   // [rows + K - 1, pitch]
  Scratch<A> output_;  // [rows, pitch]
  Scratch<A> init_;    // [pitch]
};

/// One stream of one head, token by token: what lightconv_step and
/// dynamicconv_step share.
template <class S, class A = AccumulatorOf<S>>
class HeadStepper {
 public:
  HeadStepper(const ConvShape& shape, const RingState<S>& state, Isa isa)
      : rows_(row_ops<S, A>(isa)),
        shape_(shape),
        state_(state),
        sums_(lane_pitch<A>(shape.head_channels())) {}

  /// Input number state.position + t of stream `row`; x and y [N, T', C].
  void run(
      const S* x,
      S* y,
      int64_t row,
      int64_t head,
      int64_t t,
      const A* taps,
      const A* bias) {
    const int64_t R = shape_.head_channels(), C = shape_.channels;
    const int64_t at = (row * shape_.steps + t) * C + head * R;
    A* const sums = sums_.data();
    if (bias != nullptr)
      std::copy_n(bias + head * R, R, sums);
    else
      sums_.fill_zero(R);
    const int64_t slots = state_.slots, now = state_.position + t;
    S* const ring = state_.data + row * slots * C + head * R;
    const int64_t past = std::min(slots, now);
    const A* tap = taps + slots - past;
    if (past > 0) {
      const int64_t oldest = (now - past) % slots;
      const int64_t unbroken = std::min(past, slots - oldest);
      rows_.weighted_sum(ring + oldest * C, C, tap, unbroken, sums, R);
      rows_.weighted_sum(ring, C, tap + unbroken, past - unbroken, sums, R);
    }
    rows_.weighted_sum(x + at, C, taps + slots, 1, sums, R);
    rows_.store(sums, R, 1, R, y + at, C);
    if (slots > 0)
      std::copy_n(x + at, R, ring + now % slots * C);
  }

 private:
  const RowOps<S, A>& rows_;
  const ConvShape& shape_;
  RingState<S> state_;
  Scratch<A> sums_;
};

}  // namespace seqconv::kernels
