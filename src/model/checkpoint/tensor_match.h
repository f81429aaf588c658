#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/fairseq_names.h"

namespace seqconv::internal {

/// One of our parameters and the checkpoint's rows that it is made of.
struct MatchedParameter {
  ParameterShape ours;
  std::vector<FairseqRows> parts;
};

/// Finds every parameter of `layout` in a checkpoint. Error that lists all
/// tensors which are missing or left over; Error for a tensor of another shape
/// or no floating-point type, for parts of different types, and for a shared
/// tensor that is not equal to its original.
std::vector<MatchedParameter> match_tensors(
    const FairseqLayout& layout, const FairseqCheckpoint& checkpoint);

/// The rows of a checkpoint that a part means.
StridedTensor rows_of(const FairseqCheckpoint& checkpoint, const FairseqRows& part);

/// True when two tensors have the same type, shape and bits.
bool same_bits(const StridedTensor& a, const StridedTensor& b);

}  // namespace seqconv::internal
