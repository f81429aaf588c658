#pragma once

#include "kernels/conv/taps.h"

namespace seqconv::internal::kernels {

/// Sums of rows of a place, with the inputs before a sequence where there are
/// some. For one thread.
template <class S, class A = AccumulatorOf<S>>
class ForwardRows {
 public:
  /// args: ConvForward or ConvBackward; both references are kept.
  template <class Args>
  ForwardRows(const Args& args, const AddedTaps<A>& added, Isa isa)
      : shape_(args.shape),
        x_(args.x),
        past_(args.past),
        added_(added),
        ops_(conv_kernels<S, A>(isa)) {}

  /// Convolves positions [first, first + rows) of a place with taps of which
  /// those of position `first` come first. `tile` says where sums go: out, or
  /// sums, of position `first`.
  void convolve(
      const ConvPlace& at,
      int64_t first,
      int64_t rows,
      const TapView<A>& taps,
      ConvTile<S, A> tile) {
    const int64_t early =
        past_ == nullptr ? 0 : std::clamp<int64_t>(shape_.padding_left - first, 0, rows);
    set_taps(at, taps, tile);
    if (early > 0) {
      ConvTile<S, A> staged = tile;
      stage(at, first, early, staged);
      run(at, early, staged);
      advance(at, early, taps, tile);
    }
    if (early == rows)
      return;
    const int64_t stride = at.sequence.stride * shape_.channels;
    const int64_t begin = first + early - shape_.padding_left;
    tile.in = x_ + at.sequence.at(begin) * shape_.channels + channel(at);
    tile.in_stride = stride;
    tile.first = -begin;
    tile.last = at.sequence.valid - begin;
    run(at, rows - early, tile);
  }

 private:
  int64_t channel(const ConvPlace& at) const { return at.head * shape_.head_channels(); }
  int64_t width(const ConvPlace& at) const { return at.heads * shape_.head_channels(); }

  void set_taps(const ConvPlace& at, const TapView<A>& taps, ConvTile<S, A>& tile) const {
    tile.taps = taps.at;
    tile.tap_t = taps.row_stride - taps.tap_stride;
    tile.tap_r = taps.tap_stride;
    tile.head_stride = taps.head_stride;
    tile.by_channel = taps.by_channel;
    tile.added = added_.taps(channel(at));
    tile.added_r = added_.pitch();
    tile.kernel_size = shape_.kernel_size;
    tile.heads = taps.by_channel ? 1 : at.heads;
    tile.channels = taps.by_channel ? width(at) : shape_.head_channels();
  }

  void run(const ConvPlace&, int64_t rows, ConvTile<S, A>& tile) const {
    tile.rows = rows;
    ops_.convolve(tile);
  }

  /// Rows that follow.
  void advance(
      const ConvPlace& at, int64_t rows, const TapView<A>& taps, ConvTile<S, A>& tile) const {
    tile.taps += rows * taps.row_stride;
    tile.out += rows * tile.out_stride;
    if (tile.sums != nullptr)
      tile.sums += rows * width(at);
  }

  /// Inputs of positions that see some before the sequence, copied behind these.
  void stage(const ConvPlace& at, int64_t first, int64_t rows, ConvTile<S, A>& tile) {
    const int64_t W = width(at), K = shape_.kernel_size, count = rows + K - 1;
    staged_.reserve(count * W);
    int64_t r = 0;
    for (; r < count; ++r) {
      const int64_t t = first - (K - 1) + r;
      if (t >= at.sequence.valid)
        break;
      const int64_t row =
          t < 0 ? at.sequence.past + (t + K - 1) * at.sequence.stride : at.sequence.at(t);
      std::copy_n(
          (t < 0 ? past_ : x_) + row * shape_.channels + channel(at), W, staged_.data() + r * W);
    }
    tile.in = staged_.data();
    tile.in_stride = W;
    tile.first = 0;
    tile.last = r;
    tile.ahead = 0;
  }

  const ConvShape& shape_;
  const S* const x_;
  const S* const past_;
  const AddedTaps<A>& added_;
  const ConvKernels<S, A>& ops_;
  Scratch<S> staged_;
};

}  // namespace seqconv::internal::kernels
