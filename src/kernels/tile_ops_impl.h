#pragma once

#include "kernels/tile_conv_impl.h"
#include "kernels/tile_rows_impl.h"
#include "kernels/tile_softmax_impl.h"
#include "kernels/tile_talk_impl.h"

/// The tables of one instruction set; isa.cpp chooses among them.
namespace seqconv::kernels::SEQCONV_ISA {

template <class A>
constexpr TileOps<A> make_tile_ops() {
  return {
      .convolve = convolve<A>,
      .shared_tap_gradient = shared_tap_gradient<A>,
      .tap_gradient = tap_gradient<A>,
      .column_sums = column_sums<A>,
      .softmax = softmax<A>,
      .softmax_backward = softmax_backward<A>,
      .multiply = multiply<A>,
      .prefix_sums = prefix_sums<A>,
      .gather_windows = gather_windows<A>,
      .scatter_windows = scatter_windows<A>,
      .finish_scatter = finish_scatter<A>,
      .edge_products = edge_products<A>};
}

template <class S, class A>
constexpr RowOps<S, A> make_row_ops() {
  return {
      .load = load_rows<S, A>,
      .store = store_rows<S, A>,
      .weighted_sum = weighted_sum<S, A>};
}

extern const TileOps<float> kTileFloat;
extern const TileOps<double> kTileDouble;
extern const RowOps<float, float> kRowsFloat;
extern const RowOps<double, double> kRowsDouble;
extern const RowOps<BFloat16, float> kRowsBFloat16;
const TileOps<float> kTileFloat = make_tile_ops<float>();
const TileOps<double> kTileDouble = make_tile_ops<double>();
const RowOps<float, float> kRowsFloat = make_row_ops<float, float>();
const RowOps<double, double> kRowsDouble = make_row_ops<double, double>();
const RowOps<BFloat16, float> kRowsBFloat16 = make_row_ops<BFloat16, float>();

}  // namespace seqconv::kernels::SEQCONV_ISA
