#include "kernels/decoding/decoding_ops.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/decoding/decoding_ops.cpp"
#include "kernels/common/each_target.h"
// clang-format on
#include "kernels/decoding/attend_source-inl.h"
#include "kernels/decoding/decoding-inl.h"
#include "kernels/decoding/normalize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
namespace {

/// The table of this instruction set.
struct Tables {
  static const DecodingOps& decoding() {
    static constexpr DecodingOps kTable = {
        .weigh = weigh_rows,
        .weigh_by_channel = weigh_by_channel,
        .attend = attend_row,
        .attend_source = attend_source_rows,
        .gate = gate_average,
        .sigmoid = sigmoids,
        .normalize = normalize_taps,
        .log_softmax = log_softmax,
        .softmax_terms = softmax_terms};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::internal::kernels {

const DecodingOps& decoding_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, decoding());
}

}  // namespace seqconv::internal::kernels
#endif
