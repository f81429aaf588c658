#include "libtorch/ops/sequence_values.h"

#include <ATen/Functions.h>

#include <unordered_set>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"

namespace seqconv::ops {

SequenceValues::SequenceValues(const ShortConvArguments& args)
    : count_(args.x.size(0)), steps_(args.x.dim() == 3 ? args.x.size(1) : 0) {
  if (args.cu_seqlens)
    read_offsets(args);
  else if (args.seq_idx)
    read_numbers(args);
  else if (args.lengths)
    read_lengths(args);
}

void SequenceValues::read_lengths(const ShortConvArguments& args) {
  const LengthValues values(args.op, args.lengths, args.x);
  lengths_.assign(values.data(), values.data() + count_);
}

void SequenceValues::read_offsets(const ShortConvArguments& args) {
  const at::Tensor dense = dense_lengths(args.cu_seqlens);
  const auto* const of = dense.const_data_ptr<int64_t>();
  offsets_.assign(of, of + dense.numel());
  count_ = dense.numel() - 1;
  steps_ = args.x.size(-2);
  SEQCONV_CHECK_OP(
      args.op, offsets_[0] == 0, "cu_seqlens must begin with 0, but got {}", offsets_[0]);
  for (size_t b = 1; b < offsets_.size(); ++b)
    SEQCONV_CHECK_OP(
        args.op,
        offsets_[b] >= offsets_[b - 1],
        "cu_seqlens must not decrease, but got {} after {} at {}",
        offsets_[b],
        offsets_[b - 1],
        b);
  SEQCONV_CHECK_OP(
      args.op,
      offsets_.back() == steps_,
      "cu_seqlens must end with N = {}, but got {}",
      steps_,
      offsets_.back());
}

void SequenceValues::read_numbers(const ShortConvArguments& args) {
  const int64_t B = count_, T = steps_;
  const at::Tensor dense = dense_lengths(args.seq_idx);
  const auto* const number = dense.const_data_ptr<int64_t>();
  std::vector<int64_t> firsts;
  offsets_ = {0};
  for (int64_t b = 0; b < B; ++b) {
    std::unordered_set<int64_t> seen;
    firsts.push_back(static_cast<int64_t>(lengths_.size()));
    for (int64_t t = 0; t < T; ++t) {
      const int64_t at = b * T + t, is = number[at];
      if (t > 0 && is == number[at - 1])
        continue;
      SEQCONV_CHECK_OP(
          args.op,
          is < 0 || seen.insert(is).second,
          "seq_idx must have the positions of a sequence together, but got {} again in row {} at "
          "{}",
          is,
          b,
          t);
      if (at > 0)
        offsets_.push_back(at);
      lengths_.push_back(is < 0 ? 0 : 1);
    }
  }
  if (B * T > 0)
    offsets_.push_back(B * T);
  for (size_t i = 0; i < lengths_.size(); ++i)
    lengths_[i] *= offsets_[i + 1] - offsets_[i];
  count_ = static_cast<int64_t>(lengths_.size());
  steps_ = B * T;
  firsts_ = at::tensor(firsts, at::kLong);
}

at::Tensor SequenceValues::spread_state(const at::Tensor& initial_state) const {
  if (!firsts_.defined() || count_ == 0)
    return initial_state.contiguous();
  at::Tensor all =
      at::zeros({count_, initial_state.size(1), initial_state.size(2)}, initial_state.options());
  return all.index_copy_(0, firsts_, initial_state);
}

at::Tensor SequenceValues::gather_state(const at::Tensor& gradient) const {
  return firsts_.defined() && count_ > 0 ? gradient.index_select(0, firsts_) : gradient;
}

}  // namespace seqconv::ops
