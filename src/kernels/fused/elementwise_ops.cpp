#include "kernels/fused/elementwise_ops.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fused/elementwise_ops.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/average/cumulative_average-inl.h"
#include "kernels/common/random_words-inl.h"
#include "kernels/fused/cross_entropy-inl.h"
#include "kernels/fused/layer_norm-inl.h"
#include "kernels/fused/maps-inl.h"
#include "kernels/fused/optimizer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

/// The tables of this instruction set.
struct Tables {
  template <class S>
  static const ElementwiseOps<S>& elementwise() {
    using A = AccumulatorOf<S>;
    static constexpr ElementwiseOps<S> kTable = {
        .relu = relu_range<S>,
        .swish = swish_range<S>,
        .dropout = dropout_range<S>,
        .dropout_add = dropout_add_range<S>,
        .relu_backward = relu_backward_range<S>,
        .swish_backward = swish_backward_range<S>,
        .glu = glu_row<S>,
        .glu_backward = glu_backward_row<S>,
        .layer_norm = layer_norm_rows<S>,
        .layer_norm_backward = layer_norm_backward_rows<S>,
        .cross_entropy = cross_entropy_row<A>,
        .adam = adam_range<A>,
        .nag = nag_range<A>,
        .squared_sum = squared_sum<A>};
    return kTable;
  }

  template <class S>
  static const AverageOps<S>& average() {
    static constexpr AverageOps<S> kTable = {
        .forward = average_rows<true, S>, .backward = average_rows<false, S>};
    return kTable;
  }

  static RandomWordRows words() { return draw_word_rows; }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

template <class S>
const ElementwiseOps<S>& elementwise_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, elementwise<S>());
}

template <class S>
const AverageOps<S>& average_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, average<S>());
}

RandomWordRows random_word_rows_of(Isa isa) {
  SEQCONV_CHOOSE(isa, words());
}
WordRows random_word_rows(
    uint64_t seed, uint64_t first, int64_t step, int64_t rows, int64_t count, uint32_t* buffer) {
  return random_word_rows_of(best_isa())(seed, first, step, rows, count, buffer);
}

template const ElementwiseOps<float>& elementwise_ops(Isa isa);
template const AverageOps<float>& average_ops(Isa isa);
#ifndef SEQCONV_FLOAT_ONLY
template const ElementwiseOps<double>& elementwise_ops(Isa isa);
template const ElementwiseOps<BFloat16>& elementwise_ops(Isa isa);
template const AverageOps<double>& average_ops(Isa isa);
template const AverageOps<BFloat16>& average_ops(Isa isa);
#endif

}  // namespace seqconv::internal::kernels
#endif
