#pragma once

#include "kernels/decoding.h"

/// The inner loops of decoding, written in decoding-inl.h and
/// attend_source-inl.h and compiled for each instruction set in
/// decoding_ops.cpp.
namespace seqconv::internal::kernels {

struct DecodingOps {
  void (*weigh)(const WeightedRows& args, const SeenRows& x, float* y);
  void (*weigh_by_channel)(const WeightedChannels& args, const SeenRows& x, float* y);
  void (*attend)(const AttentionRow& args, float* y);
  void (*attend_source)(
      const SeenSource& source, int64_t rows, const float* queries, float* scores, float* y);
  void (*gate)(const AverageGate& args, int64_t channels, float* y);
  void (*sigmoid)(const float* x, int64_t count, float* y);
  /// K logits -> taps, by normalisations other than the softmax.
  void (*normalize)(Normalization normalization, float* w, int64_t K);
  void (*log_softmax)(float* x, int64_t count);
  SoftmaxTerms (*softmax_terms)(const float* x, int64_t count, float* maxima);
};

const DecodingOps& decoding_ops(Isa isa);

}  // namespace seqconv::internal::kernels
