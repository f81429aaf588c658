#include <type_traits>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv/backward_places.h"

/// Backward passes of both convolutions. Shared gradients, of taps above all, are
/// summed place by place in double, in sets of neighbouring tiles that depend on
/// sizes alone, and the sets are added up in order.
namespace seqconv::internal::kernels {
namespace {

/// Sums of sets of tiles.
class SumSets {
 public:
  /// Holds `width` numbers for sets of so many tiles: enough sets for many threads, in not
  /// much more memory than tensors take.
  SumSets(int64_t tiles, int64_t width) : width_(width) {
    constexpr int64_t kSets = 256, kFewest = 16, kNumbers = 1 << 22;
    const int64_t most = std::clamp(kNumbers / std::max<int64_t>(1, width), kFewest, kSets);
    count_ = width == 0 ? 0 : std::min(tiles, most);
    sums_.resize(static_cast<size_t>(std::max<int64_t>(1, count_) * width));
  }

  int64_t count() const { return count_; }
  double* get(int64_t set) { return sums_.data() + set * width_; }
  /// Adds up all of them, in order.
  double* total(const ParallelFor& parallel_for) {
    constexpr int64_t kGrain = 1 << 14;
    parallel_for(width_, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t set = 1; set < count_; ++set)
        for (int64_t i = begin; i < end; ++i)
          sums_[static_cast<size_t>(i)] += sums_[static_cast<size_t>(set * width_ + i)];
    });
    return sums_.data();
  }

 private:
  int64_t width_, count_ = 0;
  std::vector<double> sums_;
};

/// Places of the shared gradients in a set.
struct SumParts {
  int64_t logits = 0, added = 0, bias = 0;  ///< numbers of each

  int64_t width() const { return logits + added + bias; }
  ConvSums at(double* set) const {
    return {
        logits > 0 ? set : nullptr,
        added > 0 ? set + logits : nullptr,
        bias > 0 ? set + logits + added : nullptr};
  }
};

template <class S, class L>
SumParts sum_parts(const ConvBackward<S, L>& args, bool shared_logits) {
  const ConvShape& shape = args.shape;
  const bool active = args.end.activation != ConvActivation::kNone;
  return {
      .logits = shared_logits && args.grad_logits != nullptr ? shape.heads * shape.kernel_size : 0,
      .added = args.grad_added != nullptr ? args.added.groups * shape.kernel_size : 0,
      .bias = args.grad_bias != nullptr && active ? shape.channels : 0};
}

/// Calls work(place, sums) for all places: those of a set one after the other.
template <class MakeWork>
void for_sets(
    const PlaceGrid& grid,
    const SumParts& parts,
    SumSets& sets,
    int64_t operations,
    const Execution& run,
    const MakeWork& make_work) {
  const int64_t groups = grid.groups(), tiles = grid.tiles(), count = sets.count();
  const int64_t of_item = operations * ceil_div(tiles, std::max<int64_t>(1, count));
  run.parallel_for(count * groups, grain_for(of_item), [&](int64_t begin, int64_t end) {
    auto work = make_work();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t set = item / groups;
      for (int64_t tile = set * tiles / count; tile < (set + 1) * tiles / count; ++tile)
        work(grid.get(tile, item % groups), parts.at(sets.get(set)));
    }
  });
}

template <class S, class L>
void conv_backward(
    const ConvBackward<S, L>& args, const Logits<const L>& logits, const Execution& run) {
  using A = AccumulatorOf<S>;
  const ConvShape& shape = args.shape;
  const Sequences sequences{shape, args.lengths, args.offsets};
  const bool few = few_channels<A>(shape, conv_kernels<A, A>(run.isa));
  const bool shared_taps = logits.shared() && !args.renormalize_edges;
  const PlaceGrid grid(
      sequences, tile_rows(shape.kernel_size), backward_heads(sequences, shared_taps, few));
  const AddedTaps<A> added(shape, args.added, run.isa);
  const CacheUse cache = cache_use(
      run,
      sequences.all_rows(),
      2 * shape.channels + logits.row_stride,
      args.grad_x,
      stored_channels(shape, grid, few));
  const auto make_work = [&] { return BackwardPlaces<S, L>(args, logits, added, cache, run); };
  const SumParts parts = sum_parts(args, logits.shared());
  SumSets sets(grid.tiles(), parts.width());
  const int64_t operations_of_place = 2 * operations(shape, grid);
  if (args.grad_past != nullptr)
    std::fill_n(
        args.grad_past,
        shape.batch * (shape.kernel_size - 1) * shape.dilation * shape.channels,
        S{});
  if (parts.width() == 0)
    for_places(grid, operations_of_place, run, make_work);
  else
    for_sets(grid, parts, sets, operations_of_place, run, make_work);
  const ConvSums sums = parts.at(sets.total(run.parallel_for));
  if (sums.logits != nullptr && shared_taps)
    make_work().differentiate_shared(sums.logits, args.grad_logits);
  else if (sums.logits != nullptr)
    for (int64_t i = 0; i < parts.logits; ++i)
      args.grad_logits[i] = narrow<L>(static_cast<AccumulatorOf<L>>(sums.logits[i]));
  if (sums.added != nullptr)
    std::copy_n(sums.added, parts.added, args.grad_added);
  if (sums.bias != nullptr)
    std::copy_n(sums.bias, parts.bias, args.grad_bias);
  else if (args.grad_bias != nullptr)
    bias_gradient(shape, args.lengths, args.offsets, args.grad_y, args.grad_bias, run);
}

}  // namespace

template <class S>
void lightconv_backward(const ConvBackward<S, AccumulatorOf<S>>& args, const Execution& run) {
  conv_backward(args, Logits<const AccumulatorOf<S>>{args.logits}, run);
}

template <class S, class L>
void dynamicconv_backward(const ConvBackward<S, L>& args, const Execution& run) {
  conv_backward(args, position_logits(args.shape, args.logits), run);
}

#define SEQCONV_INSTANTIATE(S, A)                                                \
  template void lightconv_backward(const ConvBackward<S, A>&, const Execution&); \
  template void dynamicconv_backward(const ConvBackward<S, A>&, const Execution&);
SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template void dynamicconv_backward(const ConvBackward<BFloat16, BFloat16>&, const Execution&);

}  // namespace seqconv::internal::kernels
