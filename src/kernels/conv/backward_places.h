#pragma once

#include "kernels/conv/forward_rows.h"

namespace seqconv::internal::kernels {

/// Gradients that positions share, summed in double: null where none are wanted.
struct ConvSums {
  double* logits = nullptr;  ///< [H, K], of shared taps or, where taps differ, logits
  double* added = nullptr;   ///< [G, K]
  double* bias = nullptr;    ///< [C]
};

/// Gradients of places, for one thread. The taps of a place are made again,
/// together with those of the K-1 positions around it that its inputs also feed:
/// a little more softmax instead of writes that places would have to share. So
/// are sums whose activation is differentiated.
template <class S, class L, class A = AccumulatorOf<S>>
class BackwardPlaces {
 public:
  BackwardPlaces(
      const ConvBackward<S, L>& args,
      const Logits<const L>& logits,
      const AddedTaps<A>& added,
      const CacheUse& cache,
      const Execution& run)
      : args_(args),
        shape_(args.shape),
        ops_(conv_kernels<S, A>(run.isa)),
        sum_ops_(conv_kernels<A, A>(run.isa)),
        grad_ops_(conv_grad_kernels<S, A>(run.isa)),
        sum_grad_ops_(conv_grad_kernels<A, A>(run.isa)),
        taps_(shape_, tap_options(args), logits, run.isa),
        forward_(args, added, run.isa),
        added_(added),
        cache_(cache),
        own_logits_(!logits.shared()),
        active_(args.end.activation != ConvActivation::kNone) {
    taps_.fetch(cache.prefetches);
  }

  /// Writes grad_x of a place and the gradients of its logits, unless they are
  /// null, those of inputs before its sequence too, and adds to `sums`.
  void operator()(const ConvPlace& at, const ConvSums& sums = {}) {
    const int64_t end = at.first + at.real();
    const Range inputs = wanted_inputs(at);
    Range outputs{at.first, end};
    if (inputs.size() > 0)  // positions around feed grad_x alone
      outputs = {
          std::max<int64_t>(0, std::min(at.first, inputs.begin - before())),
          std::min(at.sequence.valid, std::max(end, inputs.end + shape_.padding_left))};
    zero_padding(at);
    if (at.real() == 0)
      return;
    const int64_t block = taps_.shared() ? outputs.size() : kBlockRows;
    const bool whole =
        block >= outputs.size() && !args_.end.residual && (!active_ || std::is_same_v<S, A>);
    if (!whole)
      clear_sums(at, inputs);
    for (int64_t from = outputs.begin; from < outputs.end; from += block) {
      const Range made{from, std::min(from + block, outputs.end)};
      make(at, made);
      if (inputs.size() > 0)
        transposed(at, made, inputs, whole);
      const int64_t first = std::max(from, at.first);
      const Span span{first, std::min(made.end, end) - first, first - from};
      if (span.rows > 0)
        differentiate_taps(at, span, sums);
    }
    if (!whole)
      write_sums(at, inputs);
  }

  /// Gradients of the shared taps, [H, K] -> of their logits.
  void differentiate_shared(const double* sums, L* out) {
    taps_.make({});
    grad_.reserve(H() * taps_.pitch() + kTapSlack);
    for (int64_t i = 0; i < H() * K(); ++i)
      grad_.data()[i / K() * taps_.pitch() + i % K()] = static_cast<A>(sums[i]);
    taps_.backward(0, 1, grad_.data(), out, H() * K());
  }

 private:
  /// Positions whose taps are made together: scratch memory is linear in K.
  static constexpr int64_t kBlockRows = 128;
  /// Most taps for which rows of x share cache sets without loss.
  static constexpr int64_t kDirectTaps = 8;

  /// Positions [begin, end).
  struct Range {
    int64_t begin;
    int64_t end;
    int64_t size() const { return end - begin; }
  };
  /// Real positions of a place whose taps were made last.
  struct Span {
    int64_t first;
    int64_t rows;
    int64_t row;  ///< of the taps, that of the first one
  };

  int64_t C() const { return shape_.channels; }
  int64_t R() const { return shape_.head_channels(); }
  int64_t H() const { return shape_.heads; }
  int64_t K() const { return shape_.kernel_size; }
  /// Positions before an input that it feeds.
  int64_t before() const { return K() - 1 - shape_.padding_left; }
  int64_t channel(const ConvPlace& at) const { return at.head * R(); }
  int64_t width(const ConvPlace& at) const { return at.heads * R(); }
  /// Elements between positions.
  int64_t stride(const ConvPlace& at) const { return at.sequence.stride * C(); }
  /// The first channel of a place in position t of its sequence.
  int64_t index(const ConvPlace& at, int64_t t) const {
    return at.sequence.at(t) * C() + channel(at);
  }
  /// The gradient of an input, also of one before the sequence.
  S* grad_input(const ConvPlace& at, int64_t t) const {
    if (t >= 0)
      return args_.grad_x + index(at, t);
    return args_.grad_past + (at.sequence.past + (t + K() - 1) * at.sequence.stride) * C() +
        channel(at);
  }
  L* grad_logits(const ConvPlace& at, int64_t t) const {
    return args_.grad_logits + (at.sequence.at(t) * H() + at.head) * K();
  }
  /// True if every position has logits of its own, whose gradients are wanted.
  bool writes_logits() const { return own_logits_ && args_.grad_logits != nullptr; }
  int64_t ahead(const ConvPlace& at) const {
    return cache_.prefetches ? prefetch_distance(shape_, at.heads) : 0;
  }

  /// Inputs of a place whose gradients are wanted.
  Range wanted_inputs(const ConvPlace& at) const {
    const bool past = args_.grad_past != nullptr && at.first == 0;
    return {
        past ? 1 - K() : at.first,
        args_.grad_x != nullptr ? at.first + at.real()
            : past              ? 0
                                : at.first};
  }

  void zero_padding(const ConvPlace& at) const {
    if (args_.grad_x != nullptr)
      zero_rows(grad_input(at, at.first), stride(at), width(at), at.real(), at.rows);
    if (writes_logits())
      zero_rows(
          grad_logits(at, at.first),
          at.sequence.stride * H() * K(),
          at.heads * K(),
          at.real(),
          at.rows);
  }

  /// Taps of positions [from, to) and, with an activation, gradients of sums.
  void make(const ConvPlace& at, const Range& made) {
    taps_.make(
        {.sequence = at.sequence,
         .first = made.begin,
         .rows = made.size(),
         .head = at.head,
         .heads = at.heads,
         .seen = args_.past == nullptr ? 0 : K() - 1});
    if (!active_)
      return;
    const int64_t W = width(at), count = made.size() * W;
    grad_z_.reserve(count + kTapSlack);
    forward_.convolve(
        at, made.begin, made.size(), taps_.view(at.head), {.sums = grad_z_.data(), .adds = false});
    for (int64_t t = 0; t < made.size(); ++t) {
      A* const z = grad_z_.data() + t * W;
      const A* const bias = args_.bias == nullptr ? nullptr : args_.bias + channel(at);
      grad_ops_.silu_backward(z, bias, args_.grad_y + index(at, made.begin + t), z, W);
    }
  }

  /// Sums of gradients of inputs, [inputs, width]: those of a residual so far.
  void clear_sums(const ConvPlace& at, const Range& inputs) {
    const int64_t W = width(at);
    sums_.reserve(inputs.size() * W);
    sums_.fill_zero(inputs.size() * W);
    for (int64_t t = std::max<int64_t>(0, inputs.begin); args_.end.residual && t < inputs.end; ++t)
      for (int64_t c = 0; c < W; ++c)
        sums_.data()[(t - inputs.begin) * W + c] = widen(args_.grad_y[index(at, t) + c]);
  }
  void write_sums(const ConvPlace& at, const Range& inputs) {
    const int64_t W = width(at);
    for (int64_t t = inputs.begin; t < inputs.end; ++t)
      ops_.narrow(sums_.data() + (t - inputs.begin) * W, W, grad_input(at, t), /*streaming=*/false);
  }

  /// Gives what outputs `made` add to gradients of inputs: all there is to them
  /// or, unless `whole`, a part that is added to sums_.
  void transposed(const ConvPlace& at, const Range& made, const Range& inputs, bool whole) {
    // Input s feeds output s - before + i through its tap K-1-i.
    const Range fed{
        std::max(inputs.begin, made.begin - shape_.padding_left),
        std::min(inputs.end, made.end + before())};
    const auto part = [&](const Range& rows) {
      if (rows.size() <= 0)
        return;
      if (active_)
        transposed_rows(sum_ops_, grad_z_.data(), width(at), at, made, rows, inputs, whole);
      else
        transposed_rows(
            ops_, args_.grad_y + index(at, made.begin), stride(at), at, made, rows, inputs, whole);
    };
    part({fed.begin, std::min<int64_t>(fed.end, 0)});
    part({std::max<int64_t>(fed.begin, 0), fed.end});
  }

  /// Does so for inputs `rows`; `grads` are the gradients of outputs `made`.
  template <class In>
  void transposed_rows(
      const ConvKernels<In, A>& ops,
      const In* grads,
      int64_t grad_stride,
      const ConvPlace& at,
      const Range& made,
      const Range& rows,
      const Range& inputs,
      bool whole) {
    const int64_t begin = rows.begin - before();  // the output of row 0
    const TapView<A> taps = taps_.view(at.head);
    ConvTile<In, A> tile{
        .in = grads + (begin - made.begin) * grad_stride,
        .in_stride = grad_stride,
        .first = made.begin - begin,
        .last = made.end - begin,
        .taps = taps.at + (begin - made.begin) * taps.row_stride + (K() - 1) * taps.tap_stride,
        .tap_t = taps.tap_stride,
        .tap_r = taps.row_stride - taps.tap_stride,
        .head_stride = taps.head_stride,
        .by_channel = taps.by_channel,
        .added = added_.taps(channel(at) + (K() - 1) * added_.pitch()),
        .added_r = -added_.pitch(),
        .kernel_size = K(),
        .rows = rows.size(),
        .heads = taps.by_channel ? 1 : at.heads,
        .channels = taps.by_channel ? width(at) : R(),
        .out_stride = stride(at),
        .streaming = cache_.streams && rows.begin >= 0,
        .ahead = active_ ? 0 : ahead(at)};
    if (!whole)
      tile.sums = sums_.data() + (rows.begin - inputs.begin) * width(at);
    else if constexpr (std::is_same_v<In, S>)
      tile.out = grad_input(at, rows.begin);
    ops.convolve(tile);
  }

  /// Gradients of taps, and what else is summed over positions.
  void differentiate_taps(const ConvPlace& at, const Span& span, const ConvSums& sums) {
    const bool shared = sums.logits != nullptr && taps_.shared();
    const bool each = writes_logits() || (sums.logits != nullptr && !shared);
    if (!shared && !each && sums.added == nullptr && sums.bias == nullptr)
      return;
    const int64_t pitch = taps_.pitch(), row = at.heads * pitch;
    if (each)
      grad_.reserve(span.rows * row + kTapSlack);
    // The next place will make taps of these, and write them.
    const int64_t next = at.first + at.rows;
    for_products(at, span, [&](const Part& part, ProductTile<A> tile) {
      const int64_t h = (part.channel - channel(at)) / R();
      if (shared)
        add_shared(part, tile, sums.logits);
      if (sums.added != nullptr)
        add_channels(part, tile, args_.added.groups, sums.added);
      if (sums.bias != nullptr)
        add_bias(part, tile, sums.bias);
      if (!each)
        return;
      if (taps_.by_channel())
        return sum_grad_ops_.head_products(tile, R(), grad_.data() + h * pitch, row);
      tile.logits = rows_ahead(args_.logits, at, next + shape_.padding_left, h);
      tile.grad_logits = rows_ahead(args_.grad_logits, at, next, h);
      sum_grad_ops_.tap_products(tile, grad_.data() + h * pitch, row);
    });
    if (!each)
      return;
    if (writes_logits())
      return taps_.backward(
          span.row,
          span.rows,
          grad_.data(),
          grad_logits(at, span.first),
          at.sequence.stride * H() * K(),
          /*streaming=*/cache_.prefetches);
    const int64_t width = at.heads * K();
    logits_.reserve(span.rows * width);
    taps_.backward(span.row, span.rows, grad_.data(), logits_.data(), width);
    for (int64_t i = 0; i < span.rows * width; ++i)
      sums.logits[at.head * K() + i % width] += static_cast<double>(widen(logits_.data()[i]));
  }

  /// Row `t` of logits, or of their gradients, for the head h of a place and
  /// those that follow.
  template <class Logit>
  RowsAhead rows_ahead(Logit* logits, const ConvPlace& at, int64_t t, int64_t h) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(L));
    // Less than a line for a head comes by itself.
    if (!own_logits_ || !cache_.prefetches || K() * kSize < kCacheLine)
      return {};
    const int64_t row = H() * K();
    return {
        logits + at.sequence.at(t) * row + (at.head + h) * K(),
        at.sequence.stride * row * kSize,
        K() * kSize};
  }

  /// Some channels of a sequence.
  struct Part {
    Sequence sequence;
    int64_t channel;
    int64_t channels;
    int64_t ahead;
  };
  struct Rows {
    const A* data;
    int64_t stride;
  };

  void add_shared(const Part& part, const ProductTile<A>& tile, double* sums) {
    if (taps_.by_channel())
      return add_channels(part, tile, H(), sums);
    sum_grad_ops_.shared_tap_products(tile, sums + part.channel / R() * K());
  }

  /// Products of channels, added to those of their groups, sums [groups, K].
  void add_channels(const Part& part, const ProductTile<A>& tile, int64_t groups, double* sums) {
    products_.reserve(tap_pitch(K()) * kStagePitch);
    sum_grad_ops_.channel_products(tile, products_.data());
    const int64_t each = C() / groups;
    for (int64_t c = 0; c < part.channels; ++c)
      for (int64_t j = 0; j < K(); ++j)
        sums[(part.channel + c) / each * K() + j] +=
            static_cast<double>(products_.data()[j * kStagePitch + c]);
  }

  void add_bias(const Part& part, const ProductTile<A>& tile, double* sums) const {
    A some[kStagePitch] = {};
    for (int64_t t = 0; t < tile.rows; ++t)
      for (int64_t c = 0; c < part.channels; ++c)
        some[c] += tile.g[t * tile.g_stride + c];
    for (int64_t c = 0; c < part.channels; ++c)
      sums[part.channel + c] += static_cast<double>(some[c]);
  }

  /// Calls work(part, tile) for the channels of a place: a stage's width of a head
  /// or, where heads have few, of several heads at a time.
  template <class Work>
  void for_products(const ConvPlace& at, const Span& span, const Work& work) {
    const int64_t unit = taps_.by_channel() ? width(at) : R();
    const int64_t most = taps_.by_channel() ? kStagePitch / R() * R() : kStagePitch;
    for (int64_t head = 0; head < width(at); head += unit)
      for (int64_t c = 0; c < unit; c += most) {
        const Part part = {
            .sequence = at.sequence,
            .channel = channel(at) + head + c,
            .channels = std::min(most, unit - c),
            .ahead = ahead(at)};
        const Rows x = stage_inputs(part, span.first - shape_.padding_left, span.rows);
        const Rows g = stage_gradients(at, part, span);
        work(
            part,
            {.g = g.data,
             .g_stride = g.stride,
             .x = x.data,
             .x_stride = x.stride,
             .kernel_size = K(),
             .rows = span.rows,
             .channels = part.channels,
             .add = c > 0});
      }
  }

  /// Inputs of outputs, from position `first` on, zeros outside of the sequence:
  /// where they lie, if they can be read so, or copied.
  Rows stage_inputs(const Part& part, int64_t first, int64_t outputs) {
    const int64_t rows = outputs + tap_pitch(K()) - 1, valid = part.sequence.valid;
    const int64_t stride = part.sequence.stride * C();
    const S* const in = args_.x + part.sequence.at(first) * C() + part.channel;
    if constexpr (std::is_same_v<S, A>)
      if (K() <= kDirectTaps && part.channels % kTapSlack == 0 && first >= 0 &&
          first + rows <= valid)
        return {in, stride};
    staged_x_.reserve(rows * kStagePitch);
    const int64_t past = args_.past == nullptr ? 0 : std::clamp<int64_t>(-first, 0, rows);
    StageTile<S> tile{
        .in = in + past * stride,
        .in_stride = stride,
        .first = -first - past,
        .last = valid - first - past,
        .rows = rows - past,
        .channels = part.channels,
        .ahead = part.ahead};
    grad_ops_.stage(tile, staged_x_.data() + past * kStagePitch);
    if (past > 0) {
      tile.in = args_.past + (part.sequence.past + (first + K() - 1) * part.sequence.stride) * C() +
          part.channel;
      tile.first = tile.ahead = 0;
      tile.last = tile.rows = past;
      grad_ops_.stage(tile, staged_x_.data());
    }
    return {staged_x_.data(), kStagePitch};
  }

  /// Gradients of the sums of a span.
  Rows stage_gradients(const ConvPlace& at, const Part& part, const Span& span) {
    if (active_)
      return stage_rows(
          sum_grad_ops_,
          grad_z_.data() + span.row * width(at) + part.channel - channel(at),
          width(at),
          part,
          span.rows);
    return stage_rows(
        grad_ops_,
        args_.grad_y + part.sequence.at(span.first) * C() + part.channel,
        part.sequence.stride * C(),
        part,
        span.rows);
  }

  template <class In>
  Rows stage_rows(
      const ConvGradKernels<In, A>& ops,
      const In* in,
      int64_t stride,
      const Part& part,
      int64_t rows) {
    if constexpr (std::is_same_v<In, A>)
      if (part.channels % kTapSlack == 0)
        return {in, stride};
    staged_g_.reserve(rows * kStagePitch);
    ops.stage(
        {.in = in,
         .in_stride = stride,
         .last = rows,
         .rows = rows,
         .channels = part.channels,
         .ahead = active_ ? 0 : part.ahead},
        staged_g_.data());
    return {staged_g_.data(), kStagePitch};
  }

  const ConvBackward<S, L>& args_;
  const ConvShape& shape_;
  const ConvKernels<S, A>& ops_;
  const ConvKernels<A, A>& sum_ops_;
  const ConvGradKernels<S, A>& grad_ops_;
  const ConvGradKernels<A, A>& sum_grad_ops_;
  TapRows<L, A> taps_;
  ForwardRows<S, A> forward_;
  const AddedTaps<A>& added_;
  const CacheUse cache_;
  const bool own_logits_;
  const bool active_;    ///< sums pass through an activation
  Scratch<A> grad_z_;    // [rows, width]: sums, and then their gradients
  Scratch<A> sums_;      // [rows, width] of gradients of inputs
  Scratch<A> grad_;      // [rows, heads, pitch]
  Scratch<L> logits_;    // [rows, heads, K], gradients
  Scratch<A> products_;  // [pitch, kStagePitch]
  Scratch<A> staged_x_;
  Scratch<A> staged_g_;
};

}  // namespace seqconv::internal::kernels
