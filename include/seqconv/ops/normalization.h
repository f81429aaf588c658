#pragma once

namespace seqconv::ops {

/// Says how the K logits w of a kernel become taps (Wu et al. 2019, table 6),
/// with e = 1e-6: w, softmax(w), sigmoid(w), tanh(w), w^2, |w|, w / (sum |w| +
/// e), w / (sqrt(sum w^2) + e), and |w| over the same two.
enum class Normalization {
  kNone,
  kSoftmax,
  kSigmoid,
  kTanh,
  kSquare,
  kAbs,
  kL1,
  kL2,
  kAbsL1,
  kAbsL2
};

}  // namespace seqconv::ops
