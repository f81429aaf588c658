#pragma once

#include <hwy/cache_control.h>

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kernels/conv/conv_tiles.h"
#include "kernels/dropout.h"

namespace seqconv::internal::kernels {

/// Logits of type L: those of row n of the tensors and head h begin at
/// n * row_stride + h * K. A stride of zero: shared by all.
template <class L>
struct Logits {
  L* data = nullptr;
  int64_t row_stride = 0;

  bool shared() const { return row_stride == 0; }
};

/// Logits of all positions, [B, T, H, K].
template <class L>
Logits<L> position_logits(const ConvShape& shape, L* data) {
  return {data, shape.heads * shape.kernel_size};
}

/// Some real positions of some neighbouring heads.
struct TapBlock {
  Sequence sequence;
  int64_t first = 0;  ///< position of row 0
  int64_t rows = 0;
  int64_t head = 0;
  int64_t heads = 1;
  int64_t seen = 0;  ///< positions before position 0
};

/// Taps where they lie: tap j of row t of head h, counted from that where `at`
/// is, is at[t * row_stride + h * head_stride + j] or, by channel,
/// at[t * row_stride + j * tap_stride + c].
template <class A>
struct TapView {
  const A* at = nullptr;
  int64_t row_stride = 0;
  int64_t tap_stride = 1;
  int64_t head_stride = 0;
  bool by_channel = false;
};

/// True if heads have so few channels that vectors hold several of them.
template <class A>
bool few_channels(const ConvShape& shape, const ConvKernels<A, A>& ops) {
  return shape.head_channels() < ops.lanes;
}

/// Elements from a tap of all channels to the next: lines of neighbouring taps
/// do not fight for the same sets of the caches.
inline int64_t channel_pitch(int64_t channels) {
  return ceil_div(channels, kTapSlack) * kTapSlack + kTapSlack;
}

/// Places at which the channels of heads of R find their taps among those of all heads,
/// `head_stride` apart, [channels], filled up with the last one.
template <class A>
std::vector<TapIndex<A>> tap_places(int64_t channels, int64_t R, int64_t head_stride) {
  const auto last = static_cast<TapIndex<A>>((channels / R - 1) * head_stride);
  std::vector<TapIndex<A>> places(static_cast<size_t>(channel_pitch(channels)), last);
  const auto stride = static_cast<TapIndex<A>>(head_stride);
  TapIndex<A>* at = places.data();
  if (R == 1)  // a loop of vectors
    for (TapIndex<A> h = 0; h < channels; ++h)
      at[h] = h * stride;
  else
    for (int64_t h = 0; h < channels / R; ++h, at += R)
      std::fill_n(at, R, static_cast<TapIndex<A>>(h * head_stride));
  return places;
}

/// Taps [G, K] that all positions share, by channel: [K, channel_pitch(C)].
template <class A>
class AddedTaps {
 public:
  AddedTaps(const ConvShape& shape, const StaticTaps<const A>& taps, Isa isa) {
    if (taps.data == nullptr)
      return;
    const int64_t C = shape.channels, K = shape.kernel_size, R = C / taps.groups;
    pitch_ = channel_pitch(C);
    taps_.resize(static_cast<size_t>(K * pitch_));
    const auto places = tap_places<A>(C, R, K);
    conv_kernels<A, A>(isa).spread(
        {.taps = taps.data,
         .head_stride = K,
         .rows = 1,
         .head_channels = R,
         .channels = C,
         .kernel_size = K,
         .places = places.data(),
         .out = taps_.data(),
         .pitch = pitch_});
  }

  /// From channel c on; null where there are none.
  const A* taps(int64_t c) const { return taps_.empty() ? nullptr : taps_.data() + c; }
  int64_t pitch() const { return pitch_; }

 private:
  int64_t pitch_ = 0;
  std::vector<A> taps_;
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

/// The taps of a block, made from logits in memory of its own: row by row, a
/// segment of tap_pitch(K) for every head, and of these, where heads have few
/// channels, taps by channel. Shared by all positions, they are one row for all
/// heads, made once. Logits that are taps are left where they are.
template <class L, class A = AccumulatorOf<L>, int64_t kInline = 0>
class TapRows {
 public:
  TapRows(const ConvShape& shape, const TapOptions& options, const Logits<const L>& logits, Isa isa)
      : shape_(shape),
        options_(options),
        logits_(logits),
        rows_(conv_kernels<L, A>(isa)),
        sums_(conv_kernels<A, A>(isa)),
        isa_(isa),
        pitch_(tap_pitch(shape.kernel_size)),
        drops_(options.drop.active()),
        by_channel_(few_channels<A>(shape, sums_)) {}

  /// Whether all positions have the same taps.
  bool shared() const { return logits_.shared() && !options_.renormalize_edges; }
  bool by_channel() const { return by_channel_; }

  /// Elements between the taps of heads, as gradients of them lie.
  int64_t pitch() const { return pitch_; }

  /// Those of row 0 of the block made last, from head `head` on.
  TapView<A> view(int64_t head) {
    const int64_t skipped = head - block_.head;
    if (!by_channel_) {
      TapView<A> heads = made_;
      heads.at += skipped * heads.head_stride;
      return heads;
    }
    const int64_t R = shape_.head_channels(), P = spread_pitch();
    return {
        .at = spread_.data() + skipped * R,
        .row_stride = shared() ? 0 : shape_.kernel_size * P,
        .tap_stride = P,
        .by_channel = true};
  }

  void make(const TapBlock& block) {
    if (shared() && block_.rows > 0)
      return;
    block_ = shared() ? TapBlock{.rows = 1, .heads = shape_.heads} : block;
    made_ = options_.softmax ? softmax() : plain();
    if (drops_)
      drop();
    if (by_channel_)
      spread();
  }

  /// Says that logits are in no cache: those of a later row are fetched beside each that
  /// is read as it lies.
  void fetch(bool fetches) { fetches_ = fetches && !options_.softmax && !drops_ && !shared(); }

  /// Gradients `grad` of rows [row, row + rows) of taps, segments of pitch(),
  /// which it may change, -> those of the logits, rows of all heads of the block
  /// `out_stride` apart. streaming: past the caches, as far as this is possible.
  void backward(
      int64_t row, int64_t rows, A* grad, L* out, int64_t out_stride, bool streaming = false) {
    const int64_t H = block_.heads, K = shape_.kernel_size;
    const int64_t width = H * pitch_, at = row * width;
    if (drops_)
      for (int64_t i = 0; i < rows * width; ++i)
        grad[i] *= factors_.data()[at + i];
    if (options_.softmax)
      return conv_grad_kernels<L, A>(isa_).softmax_backward(
          {.w = taps_.data() + at,
           .grad = grad,
           .out = out,
           .out_stride = out_stride,
           .rows = rows,
           .heads = H,
           .kernel_size = K});
    for (int64_t t = 0; t < rows; ++t) {
      A* const dense = grad + t * width;
      for (int64_t h = 1; h < H && K < pitch_; ++h)
        std::copy_n(dense + h * pitch_, K, dense + h * K);
      rows_.narrow(dense, H * K, out + t * out_stride, streaming);
    }
    if (streaming)
      hwy::FlushStream();
  }

 private:
  /// The number of the first logit of a row of the block.
  int64_t number(int64_t row) const {
    return block_.sequence.at(block_.first + row) * logits_.row_stride +
        block_.head * shape_.kernel_size;
  }
  /// Between rows of the block.
  int64_t logit_stride() const { return block_.sequence.stride * logits_.row_stride; }

  /// Rows of logits of the block -> taps at `w`.
  TapTile<L, A> logit_tile(int64_t row, int64_t rows, A* w) const {
    return {
        .logits = logits_.data + number(row),
        .logit_stride = logit_stride(),
        .rows = rows,
        .heads = block_.heads,
        .kernel_size = shape_.kernel_size,
        .w = w};
  }

  TapView<A> softmax() {
    taps_.reserve(block_.rows * block_.heads * pitch_ + kTapSlack);
    rows_.softmax(logit_tile(0, block_.rows, taps_.data()));
    for (int64_t t = 0; options_.renormalize_edges && t < block_.rows; ++t)
      renormalize(t);
    return {
        .at = taps_.data(),
        .row_stride = shared() ? 0 : block_.heads * pitch_,
        .head_stride = pitch_};
  }

  /// Logits that are taps.
  TapView<A> plain() {
    const int64_t K = shape_.kernel_size, width = block_.heads * K;
    const L* const from = logits_.data + number(0);
    if constexpr (std::is_same_v<L, A>)
      return {.at = from, .row_stride = logit_stride(), .head_stride = K};
    taps_.reserve(block_.rows * width);
    for (int64_t t = 0; t < block_.rows; ++t)
      for (int64_t i = 0; i < width; ++i)
        taps_.data()[t * width + i] = widen(from[t * logit_stride() + i]);
    return {.at = taps_.data(), .row_stride = shared() ? 0 : width, .head_stride = K};
  }

  /// Taps of the block that meet an input: [begin, end).
  std::pair<int64_t, int64_t> meeting(int64_t t) const {
    const int64_t K = shape_.kernel_size;
    const int64_t origin = block_.first + t - shape_.padding_left;
    const int64_t begin = std::clamp<int64_t>(-block_.seen - origin, 0, K);
    return {begin, std::clamp<int64_t>(block_.sequence.valid - origin, begin, K)};
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
    sums_.softmax(
        {.logits = logits,
         .logit_stride = count,
         .rows = 1,
         .heads = block_.heads,
         .kernel_size = K,
         .w = tile.w});
  }

  /// DropConnect on all taps of the block.
  void drop() {
    constexpr int64_t kWords = 2048;  // of the first-level cache
    const TapDrop& drop = options_.drop;
    const int64_t H = block_.heads, K = shape_.kernel_size, words = H * K;
    const int64_t count = block_.rows * H * pitch_;
    const int64_t step = std::max<int64_t>(1, kWords / words);
    const uint32_t threshold = drop.mask != nullptr ? 1 : drop_threshold(drop.p);
    const A scale = static_cast<A>(1.0 / (1.0 - drop.p));
    words_.reserve(step * (words + kRandomWordsSlack));
    factors_.reserve(count);
    dropped_.reserve(count + kTapSlack);
    for (int64_t t = 0; t < block_.rows; ++t) {
      if (t % step == 0)
        drawn_ = draw(number(t), std::min(step, block_.rows - t), words);
      for (int64_t h = 0; h < H; ++h) {
        const int64_t at = (t * H + h) * pitch_;
        const A* const taps = made_.at + t * made_.row_stride + h * made_.head_stride;
        const uint32_t* const word = drawn_.words + t % step * drawn_.stride + h * K;
        for (int64_t j = 0; j < K; ++j)
          factors_.data()[at + j] = word[j] < threshold ? A(0) : scale;
        for (int64_t j = 0; j < K; ++j)
          dropped_.data()[at + j] = taps[j] * factors_.data()[at + j];
      }
    }
    made_ = {.at = dropped_.data(), .row_stride = shared() ? 0 : H * pitch_, .head_stride = pitch_};
  }

  /// Words for rows of taps, `count` each, of which the first has the number
  /// `first`: random ones, or the mask's.
  WordRows draw(int64_t first, int64_t rows, int64_t count) {
    const TapDrop& drop = options_.drop;
    if (drop.mask == nullptr)
      return random_word_rows(
          drop.seed, static_cast<uint64_t>(first), logit_stride(), rows, count, words_.data());
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(drop.mask + first + r * logit_stride(), count, words_.data() + r * count);
    return {words_.data(), count};
  }

  int64_t spread_pitch() const { return channel_pitch(block_.heads * shape_.head_channels()); }

  /// Taps of heads -> of channels.
  void spread() {
    const int64_t R = shape_.head_channels(), channels = block_.heads * R, P = spread_pitch();
    const std::pair<int64_t, int64_t> wanted = {channels, made_.head_stride};
    if (places_of_ != wanted)
      places_ = tap_places<A>(channels, R, made_.head_stride);
    places_of_ = wanted;
    spread_.reserve(block_.rows * shape_.kernel_size * P);
    sums_.spread(
        {.taps = made_.at,
         .row_stride = made_.row_stride,
         .head_stride = made_.head_stride,
         .rows = block_.rows,
         .head_channels = R,
         .channels = channels,
         .kernel_size = shape_.kernel_size,
         .places = places_.data(),
         .fetches = fetches_,
         .out = spread_.data(),
         .pitch = P});
  }

  const ConvShape& shape_;
  const TapOptions options_;
  const Logits<const L> logits_;
  const ConvKernels<L, A>& rows_;
  const ConvKernels<A, A>& sums_;
  const Isa isa_;
  const int64_t pitch_;
  const bool drops_;
  const bool by_channel_;
  bool fetches_ = false;
  TapBlock block_;
  TapView<A> made_;              ///< by head
  Scratch<A, kInline> taps_;     ///< of softmax, or widened
  Scratch<A, kInline> dropped_;  ///< taps after DropConnect
  Scratch<A, kInline> factors_;
  Scratch<A, kInline> widened_;
  Scratch<A, kInline> spread_;  ///< by channel
  std::vector<TapIndex<A>> places_;
  std::pair<int64_t, int64_t> places_of_;
  Scratch<uint32_t> words_;
  WordRows drawn_;
};

}  // namespace seqconv::internal::kernels
